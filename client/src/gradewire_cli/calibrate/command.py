"""The command `gradewire calibrate`."""

import importlib.util
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import click

from gradewire.metrics import Auto
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import parse_metric_line
from gradewire.transport import Transport
from gradewire_cli.calibrate.cascade import cascade_metrics, cascade_values, fitted_cascade, scored_cascade
from gradewire_cli.calibrate.curve import curve_of_cascade, curve_of_level, curve_of_probability, curve_of_threshold
from gradewire_cli.calibrate.fits import Gain, Split, fitted_level, fitted_probability, fitted_threshold, fitted_weight
from gradewire_cli.calibrate.output import (
    ENOUGH_FOR_A_LEVEL,
    cascade_tables,
    cascade_warnings,
    fit_lines,
    fit_table,
    judge_line,
    level_lines,
    level_table,
    level_words,
    probability_tables,
    warning_lines,
)
from gradewire_cli.calibrate.rows import VOTES, LabelledScores, labelled_scores, with_sources
from gradewire_cli.calibrate.store import built_model, line_parameters, show_or_undo, store_fit, today
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.options.common import choice_option
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.options.metrics import MetricOptions
from gradewire_cli.problems import NOTHING_SCORED, InputError, exit_on_interrupt, fail, one_line_errors, tell
from gradewire_cli.results.tables import json_option, show_tables
from gradewire_cli.rows.input_file import column_options
from gradewire_cli.scoring.labelled_rows import LabelledRows
from gradewire_cli.scoring.labelled_run import LabelledRun, labelled_options, labelled_run_of
from gradewire_cli.scoring.plan import grader_of
from gradewire_proto.exit_codes import MEANINGS, ExitCode
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_stats.calibration.cascade import DELTA
from gradewire_stats.calibration.labelled_rows import FittedFeature, Half, question_keys
from gradewire_stats.calibration.thresholds import Objective, WeightObjective

if TYPE_CHECKING:
    from gradewire_cli.server_fits import LevelStart

THRESHOLDS = ("smile", "sbert", "sfve", "bertscore")
CORRECTNESS = "correctness"
RESAMPLES = 2000

calibrate_options = stacked(
    click.argument("files", metavar="[FILE]...", nargs=-1),
    column_options,
    option("--add"),
    option("--metric", default="smile"),
    option("--model"),
    choice_option("--fit", among=("threshold", "both")),
    option("--level", is_flag=True),
    choice_option("--objective", among=get_args(Objective)),
    choice_option("--weight-objective", among=get_args(WeightObjective)),
    option("--fit-half", "half", type=click.Choice(get_args(Half))),
    option("--source"),
    option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=DELTA),
    connection_options,
    labelled_options(resamples=RESAMPLES),
    json_option,
    option("--dry-run", is_flag=True),
    option("--force", is_flag=True),
    option("--show", is_flag=True),
    option("--undo", is_flag=True),
)

_NOT_FITTED = ("risk", "judge_budget", "sample", "sample_seed", "fit")


@dataclass(frozen=True, slots=True)
class CalibrateRun:
    """A run of the command, with its input, its options and the metric to calibrate."""

    run: LabelledRun
    metric: Metric
    options: Mapping[str, Any]

    def fit(self, transport: Transport | None) -> None:
        """Score the rows, then fit, print and store the fit. Store nothing if an error occurs."""
        if isinstance(self.metric, Auto):
            self._fit_cascade(transport, self.metric)
            return
        if self.options["level"] and (model := self._model_to_score(transport)):
            # Without a usable fit, an error costs no scoring.
            self._level_start(_with_encoder(self.metric, model))
        labelled, before = self._score(transport, self.metric)
        if self.metric.name == CORRECTNESS:
            (self._fit_level if self.options["level"] else self._fit_probability)(labelled, before)
            return
        after, weight = before, None
        if self.options["fit"] == "both":
            weight = fitted_weight(before.fitted, self.options["weight_objective"])
            values: dict[str, Any] = {"sentence_weight": weight}
            labelled, after = self._score(transport, replace(self.metric, **values))
        fit = fitted_threshold(before, after, self.options["objective"], self.run.draws)
        in_words = f"threshold {fit.threshold:g}" + ("" if weight is None else f", sentence_weight {weight:g}")
        curve = curve_of_threshold(after.fitted, self.options["objective"], self.run.seed)
        lines = [*fit_lines(in_words, before, after), *curve.lines]
        show_tables([fit_table(fit), *curve.tables], lines, list(warning_lines(after, labelled)))
        scored = parse_metric_line(after.fitted.line)
        if not self.options["dry_run"]:
            # A model that is not built here is the first thing to tell.
            built_model(self.options["models_dir"], str(getattr(scored, "model", "")))
        self._refuse_unless_better(fit.gain(self.options["objective"]))
        values = {
            "parameters": line_parameters(scored),
            "threshold": fit.threshold,
            "sentence_weight": getattr(scored, "sentence_weight", None),
        }
        fitted = {**values, "figures": tuple(fit.values.items())}
        store_fit(self.options, self.run.source.short_name, after.fitted, fitted, more=curve.document())

    def _fit_probability(self, labelled: LabelledRows, scored: Split) -> None:
        rows = scored.fitted
        metric = parse_metric_line(rows.line)
        name, digest, _ = built_model(self.options["models_dir"], str(getattr(metric, "model", "")))
        grader, grader_digest, _ = built_model(self.options["models_dir"], grader_of(metric))
        votes = reads_votes(self.metric)
        provenance = {
            "metric_version": metric.version or 1,
            "model": name,
            "model_digest": digest,
            **({"grader": grader, "grader_digest": grader_digest} if grader else {}),
            "rows": self._described(rows) | {"sources": dict(sorted(Counter(rows.sources).items()))},
            "date": today(),
        }
        known = server_module("gradewire_cli.server_fits")
        features = [FittedFeature(*each) for each in known.correctness_features(grader, votes=votes)]
        shape = known.correctness_shape()
        with one_line_errors():
            stored = known.stored_fit(self.options["models_dir"], name, grader, votes=votes)
        form = None if stored is None else stored[1]
        fit = fitted_probability(scored, features, shape, provenance, form, self.run.draws)
        warnings = [*warning_lines(scored, labelled), *(f"warning: {each}" for each in fit.result.warnings)]
        before = "smile" if stored is None else f"fit {stored[0]}"
        curve = curve_of_probability(rows, features, shape, self.run.seed)
        lines = [*fit_lines("a probability", scored, scored), *curve.lines]
        if form is not None and form.get("rows", {}).get("sha256") == rows.sha256:
            warnings.append(f"warning: {before} was made from these rows, so its values here are too good")
        elif stored is not None:
            lines.append(_origin_note(before, stored[2]))
        show_tables([*probability_tables(fit, before), *curve.tables], lines, warnings)
        self._refuse_unless_better(fit.gain)
        figures = {f"{each}_held_out": value for each, value in fit.result.quality.items() if math.isfinite(value)}
        parameters = known.fit_parameters(grader, votes=votes)
        values = {"figures": tuple(figures.items()), **({"parameters": parameters} if parameters else {})}
        store_fit(self.options, self.run.source.short_name, rows, values, fit.result.fit, curve.document())

    def _fit_level(self, labelled: LabelledRows, scored: Split) -> None:
        rows = scored.fitted
        grader, start = self._level_start(parse_metric_line(rows.line))
        known = server_module("gradewire_cli.server_fits")
        features, shape = [each[0] for each in known.correctness_features(grader)], known.correctness_shape()
        fit = fitted_level(scored, start.form, features, shape, self.run.draws)
        curve = curve_of_level(rows, start.form, features, shape, self.run.seed)
        warnings = warning_lines(scored, labelled, enough=ENOUGH_FOR_A_LEVEL)
        lines = [*level_lines(fit, start.fit, scored, start.replaced), _origin_note(f"fit {start.fit}", start.origin)]
        show_tables([level_table(fit), *curve.tables], [*lines, *curve.lines], list(warnings))
        self._refuse_unless_better(fit.gain)
        provenance = {**asdict(fit.level), "fit": start.fit, "rows": self._described(rows), "date": today()}
        stored = {**fit.form, "figures": dict(fit.figures), known.LEVEL: provenance}
        parameters = known.fit_parameters(grader)
        values = {"figures": tuple(fit.figures.items()), **({"parameters": parameters} if parameters else {})}
        source = f"{self.run.source.short_name} ({level_words(fit.level)}, of fit {start.fit})"
        store_fit(self.options, source, rows, values, stored, curve.document())

    def _refuse_unless_better(self, gain: Gain | None) -> None:
        """Exit with code 5 if the new fit is not better than the one that it would replace, unless --force is given."""
        if gain is None:
            return
        if gain.is_better:
            if self.options["dry_run"]:
                tell([f"the new fit is better than the one that it would replace ({gain.statistic} {gain.text})"])
            return
        said = f"the new fit is not better than the one that it would replace ({gain.statistic} {gain.text})"
        if self.options["force"]:
            tell([f"warning: {said}"])
            return
        if self.options["dry_run"]:
            tell([f"{said}. Without --dry-run, it would be refused"])
            return
        fail(InputError(f"{said}, so it was not stored. Use --force to store it anyway"), ExitCode.NOT_BETTER)

    def _model_to_score(self, transport: Transport | None) -> str:
        """Return the encoder's name, or "" if only scores or a server know it."""
        if self.run.scores:
            return ""
        if model := getattr(self.metric, "model", None):
            return str(model)
        is_remote = transport is not None or self.run.connection.server is not None
        return "" if is_remote else str(server_module("gradewire_cli.server_fits").default_encoder())

    def _level_start(self, metric: Metric) -> "tuple[str, LevelStart]":
        """Return the metric's grader ("" without a grader), and the fit that a level starts from."""
        models_dir = self.options["models_dir"]
        name, _, _ = built_model(models_dir, str(getattr(metric, "model", "")))
        grader, _, _ = built_model(models_dir, grader_of(metric))
        with one_line_errors():
            return grader, server_module("gradewire_cli.server_fits").level_start(models_dir, name, grader)

    def _described(self, rows: LabelledScores) -> dict[str, Any]:
        return {
            "sha256": rows.sha256,
            "count": len(rows.scores),
            "right": int(rows.right.sum()),
            "questions": len(set(question_keys(rows.questions))),
            "half": self.options["half"] or "both",
        }

    def _fit_cascade(self, transport: Transport | None, metric: Auto) -> None:
        metrics = MetricOptions(metrics=cascade_metrics(metric), model=metric.model, judge=metric.judge_model)
        labelled = replace(self.run, metrics=metrics).collect(transport, keeps_rows=True)
        scored = scored_cascade(labelled, metric)
        name, digest, stored_fits = built_model(self.options["models_dir"], scored.encoder)
        provenance = {
            **scored.provenance,
            "model": name,
            "model_digest": digest,
            "rows": {
                "sha256": scored.cheap.sha256,
                "count": scored.count_of(self.options["half"]),
                "half": self.options["half"] or "both",
            },
            "date": today(),
        }
        half, delta = self.options["half"], self.options["delta"]
        fit, held = fitted_cascade(scored, provenance, half=half, delta=delta, **self.run.draws)
        warnings = [*cascade_warnings(scored, stored_fits), *(f"warning: {each}" for each in labelled.left_out())]
        curve = curve_of_cascade(scored, half, delta, self.run.seed)
        lines = [judge_line(fit, metric.judge or "lave"), *curve.lines]
        show_tables([*cascade_tables(fit, held), *curve.tables], lines, warnings)
        values = {
            "metric": metric.name,
            "metric_version": scored.provenance["metric_version"],
            "parameters": scored.parameters,
            "rows": scored.count_of(self.options["half"]),
            "figures": cascade_values(fit, held),
        }
        store_fit(self.options, self.run.source.short_name, scored.cheap, values, fit.form, curve.document())

    def _score(self, transport: Transport | None, metric: Metric) -> tuple[LabelledRows, Split]:
        metrics = replace(self.run.metrics, metrics=metric)
        labelled = replace(self.run, metrics=metrics).collect(transport, keeps_rows=True)
        return labelled, Split(*labelled_scores(labelled, metric, half=self.options["half"]))


def _origin_note(fit: str, origin: str) -> str:
    return f"{fit}: {origin}. If your rows are among these, its values here are too good"


def calibrate_run_of(options: Mapping[str, Any], metric: Metric) -> LabelledRun:
    """Return the run that the options describe; raise click.ClickException if options conflict."""
    if options["fit"] == "both" and options["scores"]:
        raise click.UsageError("--fit both scores the rows again, so it cannot be used with --scores. Leave one out")
    metrics = MetricOptions(metrics=metric, model=options["model"])
    # The directory stores the fit, even if a server scores the rows.
    connection = replace(connection_of({**options, "models_dir": None}), models_dir=options["models_dir"])
    run = labelled_run_of(options, metrics, connection)
    return replace(run, source=with_sources(run.source, options["source"]))


@command("calibrate", failed_rows=NOTHING_SCORED, not_better=MEANINGS[ExitCode.NOT_BETTER])
@calibrate_options
@click.pass_context
def calibrate_command(ctx: click.Context, /, **options: Any) -> None:
    """Fit a metric's threshold on the labelled rows in FILE and store it with the encoder.

    An answer counts as right if its score reaches the threshold. For smile, --fit both also fits the weight of the
    sentence term. For correctness, the command fits the probability itself, or with --level only its level to about 50
    rows. For auto, it fits how confident exact_match
    and correctness must be, and when asking a judge pays off.

    The command shows the quality of the verdicts of the present fit and of the new one, on questions that were not used
    for the new fit. If the new fit is better, the command writes it with the rows' digest and the date into the model's
    description. Otherwise, the command exits with code 5. --undo brings back the fit that was replaced.

    With --add, the labels of another file go into the fit, too. The command shows what 50, 100, 200 … of them bring.
    """
    if options["show"] or options["undo"]:
        named = ctx.get_parameter_source("metric") is click.core.ParameterSource.COMMANDLINE
        show_or_undo(options, _metric(options["metric"]).name if options["undo"] and named else "")
        return
    if not options["files"]:
        raise click.UsageError("name a FILE with labelled answers, or use --show or --undo")
    metric = _with_encoder(_metric(options["metric"]), options["model"])
    if metric.name in {CORRECTNESS, Auto.name} and options["fit"] == "both":
        raise click.UsageError(f"--fit both works only for smile, because {metric.name} has no weight")
    if options["level"] and metric.name != CORRECTNESS:
        raise click.UsageError(
            f"--level works only with --metric {CORRECTNESS}, because {metric.name} has no probability"
        )
    if options["level"] and reads_votes(metric):
        raise click.UsageError(f"--level changes the level of the usual fit, not of {VOTES}. Leave one of them out")
    _check_packages(metric)
    run = calibrate_run_of(options, metric)
    run.check_outputs([("--json", options["json_path"])])
    with exit_on_interrupt(lambda: "interrupted; nothing was stored"):
        CalibrateRun(run, metric, options).fit(ctx.obj)


def _check_packages(metric: Metric) -> None:
    """Raise InputError if a package that the fit needs is missing, before any row is scored."""
    needed = ("scipy", "sklearn") if metric.name == CORRECTNESS else ("scipy",)
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise InputError(
            f"fitting {metric.name} needs {' and '.join(missing)}, which is not installed. "
            "Run: pip install 'gradewire[calibrate]'"
        )


def _metric(line: str) -> Metric:
    with one_line_errors():
        metric = parse_metric_line(line)
    if metric.name not in {*THRESHOLDS, CORRECTNESS, Auto.name}:
        known = ", ".join((*THRESHOLDS, CORRECTNESS))
        raise InputError(f"--metric {line} cannot be calibrated. Choose one of {known}, {Auto.name}")
    if isinstance(metric, Auto):
        said = [name for name in _NOT_FITTED if getattr(metric, name) is not None]
        if said:
            raise InputError(f"--metric {line}: a fit is valid for every {said[0]}. Leave {said[0]} out")
    if metric.name != CORRECTNESS:
        return metric
    values: dict[str, Any] = {"features_only": True}
    if reads_votes(metric):
        if grader_of(metric):
            raise InputError(f"--metric {line}: the fit {VOTES} works without a grader. Leave grader out")
        # Without a name, an encoder that has no fit of votes yet would take the usual fit's grader.
        values["grader"] = NO_GRADER
    return replace(metric, **values)


def reads_votes(metric: Metric) -> bool:
    """Return True for the metric whose fit reads annotators' votes (`correctness?fit=votes`)."""
    return getattr(metric, "fit", None) == VOTES


def _with_encoder(metric: Metric, model: str | None) -> Metric:
    values: dict[str, Any] = {"model": getattr(metric, "model", None) or model}
    return replace(metric, **values)
