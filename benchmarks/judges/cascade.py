"""Evaluate `auto`; write benchmarks/results/cascade.md and the catalog's fit.

The rows are those of agreement.py (600 of EVOUNA's development rows) and visual.py (400 answers to questions about
pictures). Bands are fitted and evaluated on different questions. Scores are stored in --results, so an interrupted run
resumes.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.agreement.correctness import other_sets, row_options, scored_sets
from benchmarks.agreement.correctness_rows import ScoredRows, together
from benchmarks.common.measurements import write_block
from benchmarks.common.rows import read_lines, read_rows, require_files
from benchmarks.judges.agreement import MODELS, ROOT, _write_rows, judge_environment, score_rows, test_rows
from benchmarks.judges.cascade_statistics import CHEAP, CheapRows, read_cheap, read_judge, with_drawn_judge
from benchmarks.judges.cascade_tables import (
    against_judges_table,
    budget_table,
    estimates_table,
    gains_table,
    paragraphs,
    risks_table,
    splits_table,
    ways_table,
)
from benchmarks.judges.visual import ROWS as VISUAL_ROWS

from gradewire.metrics.choice import parse_metric_line
from gradewire_models.catalog.loading import find_model
from gradewire_stats.calibration.cascade import SHARES, fit_cascade, held_risks, judge_gains, judged_below
from gradewire_stats.calibration.fit_correctness import BAND_FOLDS, held_out_probabilities
from gradewire_stats.calibration.labelled_rows import FOLDS

if TYPE_CHECKING:
    from gradewire_stats.calibration.cascade import CascadeRows

MODEL = "all-MiniLM-L6-v2"
FIT_HALF = "a"
JUDGES = ("lave", "judge_verdict", "judge_similarity", "judge_grade")
SPLITS = 200
RISKS = (0.05, 0.1)
DRAWN = (0.85, 0.95, 0.99)
LEAST_CERTAIN = 0.1
"""Share of the fit half, its least certain rows, that the judge rates."""


def main() -> None:
    """Score missing rows, compute the tables and replace the document's blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    row_options(parser)
    parser.add_argument("--judge-results", type=Path, default=ROOT / "benchmarks" / "results" / "judge")
    parser.add_argument("--document", type=Path, default=ROOT / "benchmarks" / "results" / "cascade.md")
    parser.add_argument("--judges", type=Path, help="directory of built judges; default: the usual one")
    parser.add_argument(
        "--judge", action="append", choices=JUDGES, help="judge metric to use; may be repeated; default: all"
    )
    parser.add_argument(
        "--bands-only",
        action="store_true",
        help="fit only the bands in --write-fit again, for the current fit of correctness, without a judge; keep the "
        "file's values for the judge",
    )
    parser.add_argument("--write-fit", type=Path, help="write the fit to this file of the catalog")
    parser.add_argument("--date", help="ISO date of the fit; needed with --write-fit")
    options = parser.parse_args()
    if options.write_fit and not options.date:
        parser.error("--write-fit needs --date")
    if options.bands_only and not options.write_fit:
        parser.error("--bands-only needs --write-fit with an existing file")
    data = options.data / "evouna_dev.jsonl"
    require_files(data)
    judge_environment(options.judges)
    options.judge_results.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    names = options.judge or list(JUDGES)
    scores = score_rows(data, CHEAP, options.judge_results / "cascade-evouna")
    # The shipped `correctness` fit used both halves, so each row uses a fit without its question. The features were
    # chosen on the finer folds, whose results are too good, so bands use coarser folds.
    sets = (*scored_sets(options), *other_sets(options))
    if options.bands_only:
        held_out = _held_out(sets, BAND_FOLDS)
        flips = options.results / "flips.jsonl"
        flip_scores = score_rows(flips, CHEAP, options.judge_results / "cascade-flips")
        _refit_bands(read_cheap(data, scores, held_out), read_cheap(flips, flip_scores, held_out), options)
        return
    everything, coarse = (read_cheap(data, scores, _held_out(sets, parts)) for parts in (FOLDS, BAND_FOLDS))
    judged = _text_rows(data, everything, names, options.judge_results)
    document = options.document
    head = f"{len(judged[names[0]])} rows; 2 cores, load {load:.1f} before."
    write_block(document, "ways", paragraphs(head, ways_table(judged), against_judges_table(judged)))
    write_block(document, "budgets", budget_table(judged))
    gains = [f"`{name}`\n\n{gains_table(judge_gains(rows, resamples=2000, seed=0))}" for name, rows in judged.items()]
    write_block(document, "gains", paragraphs(*gains))
    write_block(document, "fit", _fit_block(everything, coarse, options))
    read = {
        "the 600": judged[names[0]],
        "the held-out split": _unjudged(everything.where(everything.halves != FIT_HALF)),
    }
    write_block(document, "splits", splits_table(read, RISKS, SPLITS))
    write_block(document, "estimates", estimates_table(judged[names[0]], names[0]))
    drawn = {f"drawn, right on {share:.0%}": with_drawn_judge(judged[names[0]], share) for share in DRAWN}
    write_block(document, "drawn", ways_table(drawn))
    write_block(document, "visual", _visual_block(options.judge_results))


def _text_rows(data: Path, everything: CheapRows, names: list[str], results: Path) -> dict[str, CascadeRows]:
    """Return the 600 rows with each judge."""
    chosen = test_rows(read_rows(data, MODELS))
    wanted = {row["id"] for row in chosen}
    mine = everything.where(np.array([row["id"] in wanted for row in everything.rows]))
    file = results / "cascade-600.rows.jsonl"
    _write_rows(file, chosen)
    return {name: mine.with_judge(read_judge(score_rows(file, (name,), results / "cascade-600"))[0]) for name in names}


def _held_out(sets: tuple[ScoredRows, ...], parts: int) -> dict[str, float]:
    """Return P(right) of all rows by ID, from fits without the row's question."""
    found = held_out_probabilities(together(*sets), parts=parts)
    return dict(zip((row["id"] for part in sets for row in part.rows), found.tolist(), strict=True))


def _unjudged(rows: CheapRows) -> CascadeRows:
    return rows.with_judge({})


def _fit_block(everything: CheapRows, coarse: CheapRows, options: argparse.Namespace) -> str:
    """Return the block about the catalog's fit."""
    fit_half, other = (everything.where((everything.halves == FIT_HALF) == own) for own in (True, False))
    alone = _unjudged(fit_half)
    edge = np.sort(alone.confidence)[int(LEAST_CERTAIN * len(alone))]
    file = options.judge_results / "cascade-least-certain.rows.jsonl"
    _write_rows(file, [row for row, sure in zip(fit_half.rows, alone.confidence, strict=True) if sure < edge])
    verdicts, line = read_judge(score_rows(file, ("lave",), options.judge_results / "cascade-least-certain"))
    rows = fit_half.with_judge(verdicts)
    # The judge rates only the least certain tenth, so there are no gains for larger shares.
    found = zip(judge_gains(rows, resamples=2000, seed=0), SHARES, strict=True)
    gains = [gain for gain, share in found if share <= LEAST_CERTAIN]
    below = judged_below(gains)
    bands = _unjudged(coarse.where(coarse.halves == FIT_HALF))
    fit = replace(fit_cascade(bands, _provenance(fit_half, line, options.date or "")), judged_below=below)
    if options.write_fit:
        form = {**fit.form, "asked_below": below, "gains": [gain.to_dict() for gain in gains]}
        options.write_fit.write_text(json.dumps(form, separators=(",", ":")) + "\n", "utf-8")
    held = held_risks(fit, _unjudged(other))
    asked = "nowhere" if below is None else f"below the confidence {below:.4f}"
    return paragraphs(
        f"Fitted on half {FIT_HALF}: {len(fit_half)} rows, {len(set(rows.clusters.tolist()))} questions, one row of "
        f"each tested. Evaluated on the other half: {len(other)} rows.",
        risks_table(fit, held),
        f"`lave` on the least certain tenth of the fit half, {int(rows.judged.sum())} rows: it is asked {asked}.",
        gains_table(gains),
    )


def _refit_bands(evouna: CheapRows, flips: CheapRows, options: argparse.Namespace) -> None:
    """Fit the bands on as many of EVOUNA's rows as there are flips, so that the risk holds for small changes too."""
    coarse = evouna.where(np.arange(len(evouna)) % max(1, len(evouna) // len(flips)) == 0).beside(flips)
    before = json.loads(options.write_fit.read_text("utf-8"))
    kept = {name: before[name] for name in ("asked_below", "gains", "judge", "judge_model")}
    kept |= {name: before[name] for name in ("judge_digest", "prompt_digest")}
    rows = coarse.where(coarse.halves == FIT_HALF)
    line = f"lave?model={before['judge_model']}@{before['judge_digest']}"
    fit = fit_cascade(_unjudged(rows), _provenance(rows, line, options.date))
    options.write_fit.write_text(json.dumps({**fit.form, **kept}, separators=(",", ":")) + "\n", "utf-8")
    held = held_risks(fit, _unjudged(coarse.where(coarse.halves != FIT_HALF)))
    write_block(options.document, "bands", risks_table(fit, held))


def _provenance(rows: CheapRows, judge_line: str, date: str) -> dict[str, Any]:
    judge = parse_metric_line(judge_line)
    name, _, digest = str(getattr(judge, "model", "")).partition("@")
    return {
        "metric_version": 1,
        "model": MODEL,
        "model_digest": find_model(MODEL).digest,
        "correctness_fit": rows.fit,
        "judge": "lave",
        "judge_model": name,
        "judge_digest": digest,
        "prompt_digest": str(getattr(judge, "prompt", "")).partition("@")[2],
        "rows": {"count": len(rows), "half": FIT_HALF},
        "date": date,
    }


def _visual_block(results: Path) -> str:
    """Return the block about fits on one half of the visual items, evaluated on the other half."""
    found: dict[str, dict[str, CascadeRows]] = {}
    for half in ("development", "held_out"):
        rows = [row for row in read_lines(VISUAL_ROWS) if row["half"] == half]
        file = results / f"cascade-visual-{half}.rows.jsonl"
        _write_rows(file, rows)
        base = results / f"cascade-visual-{half}"
        mine = read_cheap(file, score_rows(file, CHEAP, base))
        found[half] = {
            name: mine.with_judge(read_judge(score_rows(file, (name,), base))[0]) for name in ("lave", "judge_verdict")
        }
    parts = []
    for name, read in found["held_out"].items():
        fit = fit_cascade(found["development"][name], {})
        held = held_risks(fit, read)
        parts += [
            f"`{name}`, on the development half ({len(found['development'][name])} answers):",
            gains_table(fit.gains),
            f"Bands of this half, evaluated on the held-out half ({len(read)} answers):",
            risks_table(fit, held),
            _visual_ways(name, fit.judged_below, held[[each.risk for each in held].index(0.2)].judged),
        ]
    return paragraphs(ways_table(found["held_out"]), *parts)


def _visual_ways(name: str, asked_below: float | None, asked: int) -> str:
    if asked_below is None:
        return f"`{name}` is refused."
    return f"`{name}` is asked below the confidence {asked_below:.3f}: of the held-out half about {asked} at risk 0.2."


if __name__ == "__main__":
    main()
