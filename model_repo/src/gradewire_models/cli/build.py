"""``gradewire models build``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import base_models, default_model, find_model, load_catalog
from gradewire_models.cli.help import ExampleCommand, rare_option
from gradewire_models.cli.judges import FORM_OPTION, JUDGE_REPOSITORY_OPTION, build_judges, split_judges
from gradewire_models.cli.options import (
    REPOSITORY_OPTION,
    WHEELS_OPTION,
    Target,
    needs,
    target_options,
    without_traceback,
)
from gradewire_models.errors import CatalogError
from gradewire_models.judges.catalog import catalog_judges
from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.config import CONFIG_FILE
from gradewire_models.repository.serving import Copies

if TYPE_CHECKING:
    from gradewire_models.build.install import BuildResult
    from gradewire_models.repository.built import BuiltModel

_EXAMPLES = """
  gradewire models build                              the default encoder and its grader
  gradewire models build all-mpnet-base-v2
  gradewire models build qwen2.5-coder-1.5b-instruct  the default judge (needs gradewire[judge])
  gradewire models build qwen2.5-coder-1.5b-instruct --target gpu --form int4
  gradewire models build all-MiniLM-L6-v2 --target gpu
  gradewire models build all-MiniLM-L6-v2 --adapter runs/mine --name mine
"""
_USUAL_PRECISION = {"cuda": "fp32", "tensorrt": "fp16"}


@click.command(cls=ExampleCommand, examples=_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@cloup.option_group(
    "Models",
    click.option(
        "--all",
        "every",
        is_flag=True,
        help="Build all encoders and the usual graders of their fits, but no variants or judges.",
    ),
    FORM_OPTION,
)
@cloup.option_group(
    "Adapter",
    click.option(
        "--adapter",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Merge the adapter in this directory (PEFT's format) into the weights of NAME.",
    ),
    click.option("--name", "own_name", default="", help="Name the adapted model; by default after its folder."),
)
@target_options("target", "Use this precision on a GPU; by default fp32 with cuda, fp16 with tensorrt.")
@cloup.option_group(
    "Triton",
    rare_option(
        "--instances",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run N copies in Triton; by default 2 on CPUs, 1 on each GPU. A built model's config.pbtxt is rewritten.",
    ),
    rare_option(
        "--threads",
        type=click.IntRange(min=0),
        metavar="N",
        help="Use N threads for each copy on a CPU; cores / copies is best. With 0, the default, Triton's backend "
        "decides; NVIDIA's uses all of the machine's cores for each copy, even in a smaller container.",
    ),
)
@cloup.option_group(
    "Downloads",
    WHEELS_OPTION,
    rare_option("--keep-downloads", is_flag=True, help="Keep downloaded wheels for another build."),
)
@cloup.option_group("Directories", REPOSITORY_OPTION, JUDGE_REPOSITORY_OPTION)
@without_traceback()
def build(
    names: tuple[str, ...], repository: Path, judge_repository: Path | None, *, every: bool, **options: Any
) -> None:
    """Build encoders, graders and judges.

    Without NAME, build the default encoder. The usual grader of an encoder's fits for correctness is built, too. A
    model that is already built stays. If its config.pbtxt is wrong, the build rewrites this file. You can repeat a
    build at any time, and run several builds at once. A model with a different digest becomes the next version in
    Triton. With --adapter, you get a model of your own: NAME with your adapter merged into its weights.
    """
    # These imports take a second, and `list` does not need them.
    with needs("server", "building"):
        from rich.console import Console  # noqa: PLC0415

        from gradewire_models.build.adapters import user_adapted  # noqa: PLC0415
        from gradewire_models.build.install import build_model  # noqa: PLC0415
        from gradewire_models.build.progress import ConsoleProgress  # noqa: PLC0415
        from gradewire_models.build.renew import renew_exported  # noqa: PLC0415
    console = Console(stderr=True)
    if every and names:
        raise click.UsageError("--all cannot be combined with model names")
    target, adapter, own_name = options["target"], options["adapter"], options["own_name"]
    copies = Copies(options["instances"], options["threads"])
    downloads: dict[str, Any] = {name: options[name] for name in ("wheels", "keep_downloads")}
    judge_repository = judge_repository or default_judge_repository(repository)
    judges, encoders = split_judges(names, judge_repository)
    if options["form"] and not judges:
        raise click.UsageError("--form needs a judge's name")
    form = _form(options["form"], target) if judges else None
    _check_adapter(adapter, own_name, target, alone=not (every or judges or len(encoders) > 1))
    standing_alone = [] if adapter else [name for name in encoders if name not in load_catalog()]
    exported = [name for name in standing_alone if (repository / name / CONFIG_FILE).is_file()]
    listed = [name for name in encoders if name not in exported]
    named = _in_catalog(listed)
    build_judges(judges, judge_repository, form=form, copies=copies, **downloads)
    if judges and not encoders:
        return
    if exported and target.target != "cpu":
        raise click.UsageError(
            f"{exported[0]} was exported. For GPUs, export it again: gradewire models export --target gpu"
        )
    models = base_models() if every else named
    if not models and not exported:
        models = [default_model()]
    chosen = [_variant(user_adapted(adapter, model, own_name) if adapter else model, target) for model in models]
    chosen = list({model.name: model for model in (*chosen, *_graders_of(chosen))}.values())
    for name in exported:
        standing, written = renew_exported(repository, name, copies)
        _tell_standing(standing, renewed=written)
    for index, model in enumerate(chosen):
        # A grader is often made from the wheels of its encoder.
        kept = downloads | ({"keep_downloads": True} if _shares_wheels(model, chosen[index + 1 :]) else {})
        with ConsoleProgress(console, model.name) as progress:
            result = build_model(model, repository, copies=copies, report=progress.report, **kept)
        _tell(result)


def _form(form: str | None, target: Target) -> str | None:
    """Return a judge's form for a device: --target gpu means fp16, unless --form names a form for GPUs."""
    if target.target == "cpu":
        return form
    if target.precision == "fp32" or target.accelerator == "tensorrt" or form in {"int8", "gguf", "both"}:
        raise click.UsageError("for GPUs, a judge has the forms fp16 and int4, both with --accelerator cuda")
    return form or "fp16"


def _in_catalog(names: Sequence[str]) -> list[CatalogModel]:
    try:
        return [find_model(name) for name in names]
    except CatalogError as error:
        judges = ", ".join(judge.name for judge in catalog_judges().values() if judge.buildable)
        raise click.UsageError(f"{error}; judges: {judges}") from error


def _graders_of(models: Sequence[CatalogModel]) -> list[CatalogModel]:
    """Return the usual grader of each model's fits: the first in the catalog's order."""
    found = []
    for model in models:
        named = {value for fit in model.calibrations for name, value in fit.parameters if name == "grader"}
        found += [grader for grader in load_catalog().values() if grader.name in named][:1]
    return found


def _shares_wheels(model: CatalogModel, later: Sequence[CatalogModel]) -> bool:
    return any(each.package == model.package for each in later)


def _check_adapter(adapter: Path | None, own_name: str, target: Target, *, alone: bool) -> None:
    if own_name and adapter is None:
        raise click.UsageError("--name needs --adapter")
    if adapter is not None and not (alone and target.target == "cpu"):
        raise click.UsageError("--adapter needs a single catalog encoder, and does not work with --all or --target gpu")


def _variant(model: CatalogModel, target: Target) -> CatalogModel:
    if target.target == "cpu":
        return model
    if model.base:
        raise click.UsageError(f"{model.name} is already a variant. Use {model.base}, or leave out --target")
    accelerator = target.accelerator or "cuda"
    usual = "fp16" if model.kind == "grader" else _USUAL_PRECISION[accelerator]
    wanted = f"{model.name}-{target.precision or usual}-{accelerator}"
    having = [each.name for each in load_catalog().values() if each.base == model.name]
    if wanted not in having:
        listed = ", ".join(having) or "none"
        raise click.UsageError(f"the catalog has no {wanted}. Variants of {model.name}: {listed}")
    return find_model(wanted)


def _tell_standing(model: "BuiltModel", *, renewed: bool) -> None:
    click.echo(f"{model.name}: already built, digest {model.digest}, in {model.directory}")
    if renewed:
        click.echo("  config.pbtxt was rewritten. If Triton is running, reload the model")


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
            f"  dropped, because the model's vectors changed: {fitted.summary}. Fit it again: gradewire calibrate"
        )
    if not model.on_cpu:
        known = load_catalog().get(model.name)
        if known is not None and known.compared_fits is not None:
            click.echo(f"  {known.compared_fits.summary}")
        click.echo(
            "  gradewire's tests run this model on CPUs only. Compare its scores on your GPU with "
            f"{model.base}'s before you rely on them (docs/reference/models.md)"
        )
