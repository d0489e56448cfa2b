"""Options for metrics and their prompt files."""

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from gradewire.metrics import METRIC_TYPES, PRESETS, SYNTHETIC_MODES, Preset, Synthetic
from gradewire.metrics.base import Metric, ParameterKind, WireParameter, wire_parameters
from gradewire.metrics.prompts import PromptText, read_prompt_text
from gradewire.options import USUAL_METRICS
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError, named_errors, one_line_errors

_HELP_COLUMNS = 78
_PLACEHOLDERS = {
    ParameterKind.FLAG: "true|false",
    ParameterKind.COUNT: "N",
    ParameterKind.NUMBER: "X",
    ParameterKind.TEXT: "NAME",
}


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """A prompt file: where it is, and what it says."""

    path: Path
    prompt: PromptText


def read_bytes(path: Path) -> bytes:
    """Read a file; raises InputError where it cannot be read."""
    with named_errors(path):
        return path.read_bytes()


def read_prompt_file(path: Path) -> GivenPrompt:
    """Read a prompt file; raises InputError where it cannot be read, InvalidRequest where it is none."""
    return GivenPrompt(path, read_prompt_text(read_bytes(path), str(path)))


def with_prompts(metrics: Iterable[Metric], prompts: Sequence[GivenPrompt]) -> list[Metric]:
    """Put the text of each --prompt file into its metric: the one that names the file, or names no prompt at all.

    Raises:
        InputError: A file is for none of the metrics, or two are for the same.
    """
    used: set[Path] = set()
    filled = []
    for metric in metrics:
        fitting = _fitting(metric, prompts)
        if len(fitting) > 1:
            paths = " and ".join(str(given.path) for given in fitting)
            raise InputError(
                f"--prompt: {paths} are both for {metric.name}: say which in --metrics "
                f"('{metric.name}?prompt={fitting[0].prompt.name}'), or leave one out"
            )
        changes: dict[str, Any] = {"prompt": fitting[0].prompt.text} if fitting else {}
        used.update(given.path for given in fitting)
        filled.append(replace(metric, **changes))
    for given in prompts:
        if given.path not in used:
            raise InputError(
                f"--prompt {given.path}: it is {given.prompt.name} for {given.prompt.metric}, which is not among "
                "--metrics, or says another prompt there"
            )
    return filled


def _fitting(metric: Metric, prompts: Sequence[GivenPrompt]) -> list[GivenPrompt]:
    named = getattr(metric, "prompt", None)
    return [
        given
        for given in prompts
        if given.prompt.metric == metric.name and (not named or given.prompt.is_named_by(named))
    ]


metric_options = stacked(
    option("--metrics", default=USUAL_METRICS),
    option("--model"),
    option("--preset", type=click.Choice(PRESETS)),
    option("--synthetic", type=click.Choice(SYNTHETIC_MODES)),
    option("--reference-set"),
)
cascade_options = stacked(
    option("--risk", type=click.FloatRange(0, 1, min_open=True, max_open=True)),
    option("--judge-budget", type=click.FloatRange(0, 1)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """The options that choose metrics, as they were written; `resolve_plan` makes a plan of them.

    Attributes:
        metrics: Names and lines separated by commas, `all` among them; or one metric.
        usual: Whether nobody named them, so that `correctness` is left out where the encoder has no fit for it.
        reference_set: Name of prepared references, for synthetic = prepared and for prepared corpora.
        retries: How often rows are sent again when the server says that this may help.
    """

    metrics: str | Metric
    usual: bool = False
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    reference_set: str | None = None
    judge: str | None = None
    prompts: Sequence[GivenPrompt] = ()
    retries: int = 0
    risk: float | None = None
    judge_budget: float | None = None

    def arguments(self, lines: Iterable[str]) -> list[str]:
        """Return the options that reproduce metrics of these lines; a metric that was never computed has no line."""
        prompts = (("--prompt", str(given.path)) for given in self.prompts)
        return ["--metrics", ",".join(filter(None, lines)), *itertools.chain(*prompts)]


def metric_options_of(options: Mapping[str, Any]) -> MetricOptions:
    """Read the options of `metric_options` and `judge_options`; raises click.ClickException."""
    named = options["reference_set"] or "reference_set=" in options["metrics"]
    if options["synthetic"] == "prepared" and not named:
        raise click.UsageError("--synthetic prepared needs --reference-set: the name that `gradewire prepare` prints")
    cascade: dict[str, Any] = {name: options.get(name) for name in ("risk", "judge_budget")}
    if None not in cascade.values():
        raise click.UsageError("--judge-budget stands in place of --risk: leave one of them out")
    with one_line_errors():
        prompts = [read_prompt_file(path) for path in options["prompts"]]
    names = ("metrics", "preset", "synthetic", "model", "reference_set", "judge", "retries")
    usual = is_usual(options["metrics"])
    return MetricOptions(**{name: options[name] for name in names}, **cascade, prompts=prompts, usual=usual)


def is_usual(metrics: str) -> bool:
    """Tell whether these are the usual metrics, and the command line that is read names none."""
    source = click.get_current_context().get_parameter_source("metrics")
    return metrics == USUAL_METRICS and source is click.core.ParameterSource.DEFAULT


def metrics_help() -> str:
    """Return the metrics with their parameters, as a block for a command's help."""
    width = max(map(len, METRIC_TYPES)) + 2
    lines = []
    for name in METRIC_TYPES:
        parameters = sorted(_written(parameter) for parameter in wire_parameters(name).values())
        lines += textwrap.wrap(
            "  ".join(parameters) or "-",
            _HELP_COLUMNS,
            initial_indent=f"  {name:<{width}}",
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    judged = ", ".join(name for name, kind in METRIC_TYPES.items() if kind.asks_judge())
    asked = textwrap.wrap(
        f"{judged} ask a judge, a language model, which takes seconds for a row on a CPU. all leaves them out; "
        "all,lave has both.",
        _HELP_COLUMNS,
    )
    return "\n".join(["\b", "Metrics, and what NAME?KEY=VALUE&KEY=VALUE takes:", *lines, "", "\b", *asked])


def _written(parameter: WireParameter) -> str:
    values = "|".join(parameter.choices) if parameter.kind is ParameterKind.CHOICE else _PLACEHOLDERS[parameter.kind]
    return f":{values}" if parameter.name == "preset" else f"{parameter.name}={values}"
