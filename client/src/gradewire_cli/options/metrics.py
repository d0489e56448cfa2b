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
from gradewire.references import SyntheticGeneration
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError, named_errors, one_line_errors

_HELP_COLUMNS = 78
_SYNTHETIC = "synthetic"
_PLACEHOLDERS = {
    ParameterKind.FLAG: "true|false",
    ParameterKind.COUNT: "N",
    ParameterKind.NUMBER: "X",
    ParameterKind.TEXT: "NAME",
}


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """A prompt file's path and prompt."""

    path: Path
    prompt: PromptText


def read_bytes(path: Path) -> bytes:
    """Read a file; raise InputError if this fails."""
    with named_errors(path):
        return path.read_bytes()


def read_prompt_file(path: Path) -> GivenPrompt:
    """Read a prompt file; raise InputError if it cannot be read, or InvalidRequest if it is not a prompt file."""
    return GivenPrompt(path, read_prompt_text(read_bytes(path), str(path)))


def synthetic_generation(judge: str | None, prompt: Path | None) -> SyntheticGeneration:
    """Return the writer of synthetic answers. None means the default judge, or the default prompt.

    Raises:
        InputError: The prompt file cannot be read, or is for another metric.
        InvalidRequest: The file is not a prompt file.
    """
    text = ""
    if prompt is not None:
        given = read_prompt_file(prompt).prompt
        if given.metric != _SYNTHETIC:
            raise InputError(f"--prompt {prompt}: this prompt is for {given.metric}, not for {_SYNTHETIC}")
        text = given.text
    return SyntheticGeneration(judge=judge or "", prompt=text)


def with_prompts(metrics: Iterable[Metric], prompts: Sequence[GivenPrompt]) -> list[Metric]:
    """Put each --prompt file's text into its metric, unless the metric names another prompt.

    Raises:
        InputError: A file fits no metric, or two files fit the same metric.
    """
    used: set[Path] = set()
    filled = []
    for metric in metrics:
        fitting = _fitting(metric, prompts)
        if len(fitting) > 1:
            paths = " and ".join(str(given.path) for given in fitting)
            raise InputError(
                f"--prompt: {paths} are both for {metric.name}. Choose one in --metrics "
                f"('{metric.name}?prompt={fitting[0].prompt.name}'), or leave one out"
            )
        changes: dict[str, Any] = {"prompt": fitting[0].prompt.text} if fitting else {}
        used.update(given.path for given in fitting)
        filled.append(replace(metric, **changes))
    for given in prompts:
        if given.path not in used:
            raise InputError(
                f"--prompt {given.path}: prompt {given.prompt.name} is for {given.prompt.metric}. Add this metric to "
                "--metrics or, if --metrics gives it a different prompt, remove that prompt"
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
    """The unresolved options that choose metrics.

    Attributes:
        metrics: One metric, or comma-separated metric names and identifiers. One of the names may be `all`.
        usual: True if the user named no metrics. Then smile replaces `correctness` if the encoder has no fit for it.
        reference_set: Name of the prepared reference set, for --synthetic prepared and for corpus statistics.
        retries: Maximum number of retries for a row that the server reports as retryable.
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
        """Return the arguments that reproduce these metric identifiers. "" means a metric that was never computed."""
        prompts = (("--prompt", str(given.path)) for given in self.prompts)
        return ["--metrics", ",".join(filter(None, lines)), *itertools.chain(*prompts)]


def metric_options_of(options: Mapping[str, Any]) -> MetricOptions:
    """Read `metric_options` and `judge_options`; raise click.ClickException if one of them is invalid."""
    named = options["reference_set"] or "reference_set=" in options["metrics"]
    if options["synthetic"] == "prepared" and not named:
        raise click.UsageError("--synthetic prepared needs --reference-set NAME; `gradewire prepare` prints the name")
    cascade: dict[str, Any] = {name: options.get(name) for name in ("risk", "judge_budget")}
    if None not in cascade.values():
        raise click.UsageError("--judge-budget and --risk are mutually exclusive. Leave one out")
    with one_line_errors():
        prompts = [read_prompt_file(path) for path in options["prompts"]]
    names = ("metrics", "preset", "synthetic", "model", "reference_set", "judge", "retries")
    usual = is_usual(options["metrics"])
    return MetricOptions(**{name: options[name] for name in names}, **cascade, prompts=prompts, usual=usual)


def is_usual(metrics: str) -> bool:
    """Return True if `metrics` is the default, because the command line names no metrics."""
    source = click.get_current_context().get_parameter_source("metrics")
    return metrics == USUAL_METRICS and source is click.core.ParameterSource.DEFAULT


def metrics_help() -> str:
    """Return the help block on metrics and their parameters."""
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
    *judged, last = (name for name, kind in METRIC_TYPES.items() if kind.asks_judge())
    asked = textwrap.wrap(
        f"{', '.join(judged)} and {last} ask a judge. A judge is a language model that takes seconds per row "
        "on a CPU. --metrics all excludes these metrics. To add one, write, for example, --metrics all,lave.",
        _HELP_COLUMNS,
    )
    return "\n".join(["\b", "Metrics and their parameters (NAME?KEY=VALUE&KEY=VALUE):", *lines, "", "\b", *asked])


def _written(parameter: WireParameter) -> str:
    values = "|".join(parameter.choices) if parameter.kind is ParameterKind.CHOICE else _PLACEHOLDERS[parameter.kind]
    return f":{values}" if parameter.name == "preset" else f"{parameter.name}={values}"
