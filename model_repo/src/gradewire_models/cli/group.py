"""The group ``gradewire models``, with its commands `list` and `verify`."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import base_models, default_model, grader_models, load_catalog
from gradewire_models.cli.build import build
from gradewire_models.cli.export import export
from gradewire_models.cli.help import CommandGroup, ExampleCommand
from gradewire_models.cli.judges import (
    JUDGE_REPOSITORY_OPTION,
    show_judges,
    split_judges,
    verify_judges,
)
from gradewire_models.cli.options import (
    REPOSITORY_OPTION,
    MissingPackageError,
    needs,
    without_traceback,
)
from gradewire_models.judges.description import DESCRIPTION_FILE
from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.built import BuiltModel, described_in, list_built
from gradewire_models.repository.config import CONFIG_FILE
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from gradewire_models.build.verify import Check


_VERIFY_EXAMPLES = """
  gradewire models verify
  gradewire models verify all-MiniLM-L6-v2-int8 --rows answers.jsonl
"""


class _TrainGroup(CommandGroup):
    """A group that imports `gradewire_train` only when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return _commands().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None if the name is unknown."""
        return _commands().get_command(ctx, cmd_name)


def _commands() -> click.Group:
    # Import by name, because the training package may be missing.
    found = find_spec("gradewire_train")
    # Byte code from an older checkout makes a namespace package, which has no origin.
    if found is None or found.origin is None:
        raise MissingPackageError("the package gradewire-train is not installed. Run: pip install 'gradewire[train]'")
    group = import_module("gradewire_train.cli").train
    if not isinstance(group, click.Group):
        raise TypeError("the commands of gradewire_train are not a group")
    return group


@click.group(cls=_TrainGroup)
def train() -> None:
    """Train encoders for the metrics `sfve` and `grader`, and show their training material."""


@click.group(cls=CommandGroup)
def models() -> None:
    """Build, list and verify encoders, graders and judges.

    Models are built from packages pinned by SHA-256, and checked against an independent computation before they are
    published. After a failure, the repository is unchanged.
    """


models.add_command(build)
models.add_command(export)
models.add_command(train)


@models.command(name="list", cls=ExampleCommand)
@cloup.option_group("Directories", REPOSITORY_OPTION, JUDGE_REPOSITORY_OPTION)
def list_models(repository: Path, judge_repository: Path | None) -> None:
    """List the models in the catalog, and show which of them are built."""
    built = {model.name: model for model in list_built(repository)}
    for entry in (*base_models(), *grader_models()):
        click.echo(f"{entry.name}{_mark(entry)}: {entry.title}")
        gives = "one logit" if entry.kind == "grader" else f"{entry.dims} dims"
        click.echo(f"  {entry.licence}, {gives}, at most {entry.max_tokens} tokens")
        click.echo(f"  {_state(entry, built.get(entry.name))}")
        _tell_remarks(built.get(entry.name), indent="  ")
        for variant in load_catalog().values():
            if variant.base == entry.name:
                click.echo(f"  variant {variant.name}: {variant.title}")
                click.echo(f"    {_state(variant, built.get(variant.name))}")
                if variant.compared_fits is not None:
                    click.echo(f"    {variant.compared_fits.summary}")
                _tell_remarks(built.get(variant.name), indent="    ")
    for name in sorted(set(built) - set(load_catalog())):
        adapter = built[name].adapter
        made = f"adapter on {adapter.base}, " if adapter else ""
        mark = " (grader)" if built[name].kind == "grader" else ""
        click.echo(f"{name}{mark}: not in the catalog, {made}digest {built[name].digest}")
        _tell_remarks(built[name], indent="  ")
    click.echo(f"repository: {repository}")
    show_judges(judge_repository or default_judge_repository(repository))


@models.command(cls=ExampleCommand, examples=_VERIFY_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cloup.option_group(
    "Variants",
    click.option(
        "--rows",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Compare variants with their base on these JSON lines of question, references and prediction (at most "
        "500 are used). By default, use gradewire's own 504.",
    ),
)
@cloup.option_group("Directories", REPOSITORY_OPTION, JUDGE_REPOSITORY_OPTION)
@without_traceback()
def verify(names: tuple[str, ...], rows: Path | None, repository: Path, judge_repository: Path | None) -> None:
    """Check built models; exit with 4 if a check fails.

    Without NAME, check all models. For encoders and graders, check that the digests, config.pbtxt and the graph match.
    Also compare their results for texts of many lengths, alone and in mixed batches, with an independent computation
    from the build. A variant must also return nearly the same scores as its base, which must be built; GPU variants run
    on the CPU for this. For judges, check the digests, the tokenizer, and the next-token logits of a few texts: alone,
    in a batch and after a cached prefix.
    """
    with needs("server", "verifying"):
        from gradewire_models.build.quality import check_quality  # noqa: PLC0415 - a slow import
        from gradewire_models.build.verify import verify_built  # noqa: PLC0415 - a slow import
    judge_repository = judge_repository or default_judge_repository(repository)
    judges, encoders = split_judges(names, judge_repository)
    if not names:
        encoders = [path.name for path in described_in(repository, CONFIG_FILE)]
        judges = [path.name for path in described_in(judge_repository, DESCRIPTION_FILE)]
    if not encoders and not judges:
        raise click.ClickException(f"no model is built in {repository}. Run: {default_model().build_hint}")

    def check_encoders() -> "Iterator[tuple[str, list[Check]]]":
        for name in encoders:
            checks = verify_built(repository, name, load_catalog().get(name))
            yield name, [*checks, *check_quality(repository, name, rows)]

    if _tell_checks(chain(check_encoders(), verify_judges(judges, judge_repository))):
        raise click.exceptions.Exit(ExitCode.GATE)


def _tell_checks(checked: Iterable[tuple[str, list["Check"]]]) -> bool:
    failed = False
    for name, checks in checked:
        click.echo(name)
        for check in checks:
            click.echo(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
        failed |= not all(check.passed for check in checks)
    return failed


def _mark(entry: CatalogModel) -> str:
    if entry.kind != "grader":
        return " (default)" if entry.default else ""
    return " (grader, default)" if entry == grader_models()[0] else " (grader)"


def _state(entry: CatalogModel, built: BuiltModel | None) -> str:
    if built is None:
        return f"not built ({entry.download_bytes / 1e6:.0f} MB to download). Run: {entry.build_hint}"
    if entry.digest not in {"", built.digest}:
        return f"built with a digest that differs from the catalog's. Build the model again: {entry.build_hint}"
    return f"built, digest {built.digest}"


def _tell_remarks(model: BuiltModel | None, *, indent: str) -> None:
    for line in model.remarks if model is not None else ():
        click.echo(f"{indent}{line}")
