"""Build, list and verify judges for the commands of ``gradewire models``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradewire_models.cli.help import rare_option
from gradewire_models.cli.options import needs
from gradewire_models.judges.catalog import CPU_FORMS, FORMS, CatalogJudge, Form, catalog_judges, find_judge
from gradewire_models.judges.cores.rows import PADDED_FORMS
from gradewire_models.judges.repository import BuiltJudge, list_judges

if TYPE_CHECKING:
    from gradewire_models.build.verify import Check
    from gradewire_models.judges.build.install import JudgeResult
    from gradewire_models.repository.serving import Copies

JUDGE_REPOSITORY_OPTION = rare_option(
    "--judge-repository",
    type=click.Path(file_okay=False, path_type=Path),
    help="Use this directory of built judges. If unset, use judges next to the model repository.",
)
FORM_OPTION = click.option(
    "--form",
    type=click.Choice([*FORMS, "both"]),
    help="Build this form of a judge: int8 (a graph for x86 processors), gguf (the published file for llama.cpp), or "
    "fp16 or int4 (graphs for GPUs). both means int8 and gguf. By default int8 on x86, otherwise gguf.",
)


def split_judges(names: Sequence[str], repository: Path) -> tuple[list[str], list[str]]:
    """Split model names into judges and encoders."""
    known = {*catalog_judges(), *(judge.name for judge in list_judges(repository))}
    return [name for name in names if name in known], [name for name in names if name not in known]


def build_judges(  # noqa: PLR0913 - the command's options
    names: Sequence[str],
    repository: Path,
    *,
    form: str | None,
    wheels: Path | None,
    keep_downloads: bool,
    copies: "Copies",
) -> None:
    """Build judges and print the results.

    Raises:
        BuildError: A build failed.
        CatalogError: The catalog has no such judge.
        MissingPackageError: A package is not installed.
    """
    if not names:
        return
    with needs("judge", "building a judge"):
        from rich.console import Console  # noqa: PLC0415 - this import takes a second, and `list` does not need it

        from gradewire_models.build.progress import ConsoleProgress  # noqa: PLC0415 - as above
        from gradewire_models.judges.build.install import build_judge  # noqa: PLC0415 - as above
    console = Console(stderr=True)
    forms: tuple[Form, ...] = CPU_FORMS if form == "both" else tuple(known for known in FORMS if known == form)
    for name in names:
        with ConsoleProgress(console, name) as progress:
            result = build_judge(
                find_judge(name),
                repository,
                forms=forms,
                wheels=wheels,
                keep_downloads=keep_downloads,
                copies=copies,
                report=progress.report,
            )
        _tell(result)


def verify_judges(names: Sequence[str], repository: Path) -> Iterator[tuple[str, list["Check"]]]:
    """Check judges, one after the other.

    Raises:
        ModelNotBuiltError: A judge is not built.
        MissingPackageError: A package is not installed.
    """
    if not names:
        return
    with needs("judge", "verifying a judge"):
        from gradewire_models.judges.build.verify import verify_judge  # noqa: PLC0415 - a slow import that `list` does not need
    for name in names:
        yield name, verify_judge(repository, name, catalog_judges().get(name))


def show_judges(repository: Path) -> None:
    """List the catalog's judges, with their states in the repository."""
    built = {judge.name: judge for judge in list_judges(repository)}
    for entry in catalog_judges().values():
        mark = " (judge, default)" if entry.default else " (judge)"
        click.echo(f"{entry.name}{mark}: {entry.title}")
        click.echo(f"  {entry.licence}, {entry.origin}, at most {entry.context_tokens} tokens")
        for remark in entry.remarks:
            click.echo(f"  {remark}")
        click.echo(f"  {_state(entry, built.get(entry.name))}")
    for name in sorted(set(built) - set(catalog_judges())):
        click.echo(f"{name} (judge): not in the catalog; {_forms(built[name])}")
    click.echo(f"judges: {repository}")


def _state(entry: CatalogJudge, built: BuiltJudge | None) -> str:
    if not entry.buildable:
        return entry.build_hint
    if built is None:
        return f"not built ({entry.download_bytes / 1e6:.0f} MB to download). Run: {entry.build_hint}"
    if any(entry.digests.get(form, digest) != digest for form, digest in built.digests.items()):
        return f"built with a digest that differs from the catalog's. Build the judge again: {entry.build_hint}"
    return f"built, {_forms(built)}"


def _forms(judge: BuiltJudge) -> str:
    said = ", ".join(f"{form} digest {judge.digests[form]}" for form in judge.forms)
    return f"{judge.bytes / 1e6:.0f} MB: {said}"


def _tell(result: "JudgeResult") -> None:
    judge = result.judge
    click.echo(f"{judge.name}: {'built' if result.built else 'already built'}, {_forms(judge)}, in {judge.directory}")
    if result.renewed:
        click.echo("  the files for Triton were rewritten. If Triton is running, reload the model")
    for check in result.checks:
        click.echo(f"  {check.name}: {check.detail}")
    if set(judge.forms) & set(PADDED_FORMS):
        click.echo("  the forms fp16 and int4 were never run on a GPU in gradewire's own tests")
    if judge.test_only:
        click.echo("  only for testing the setup: its verdicts are no better than chance")
