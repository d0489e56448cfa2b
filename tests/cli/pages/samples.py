"""Runs beside labels, made up: as many rows as one likes, some of them hostile, some failed."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradewire_cli.pages.agreement_input import ReportInput, ReportRow
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    '<img src="https://192.0.2.1/x.png" onerror="window.hacked = 1">',
    "\u202egnorw\u202c \u200bhidden\x00\x07 \ud800",
    "{{ 7 * 7 }} {% raw %} &amp; '\"><svg/onload=window.hacked=1>",
    "x" * 1_000_000,
    "ع" * 300 + " נכון",
    "e" + "\u0301" * 30,
)
DATASETS = ("nq", "tq")
MODELS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


def smile(score: float, window: str, **changes: Any) -> dict[str, Any]:
    """A result as SMILE gives it."""
    return {
        "score": score,
        "status": "OK",
        "matched_reference": 1,
        "sentence": score,
        "keyword": score,
        "exact": 1.0,
        "lexical": score,
        "best_window": window,
        "bin": 5,
        "correct": score >= 2 / 3,
        "line": "smile:v1/1?model=tiny@53aa51172d14&sentence_weight=0.3",
    } | changes


def failed(status: str = "TIMEOUT") -> dict[str, Any]:
    """A result without a score."""
    return {"score": None, "status": status, "message": "the deadline passed; send it again"}


def report_of(rows: list[ReportRow], *, resamples: int = 20, groups: Sequence[str] = (), **changes: Any) -> ReportInput:
    """A report of the rows, its figures computed by the library."""
    metrics = list(rows[0].results)
    judged = JudgedRows(
        scores={name: _column(rows, name, "score") for name in metrics},
        verdicts={name: _column(rows, name, "correct") for name in metrics},
        labels=np.array([row.label for row in rows]),
        datasets=[row.dataset for row in rows],
        models=[row.model for row in rows],
        questions=[row.question for row in rows],
        groups=groups,
    )
    found = agreement(
        judged, compare=[(other, metrics[0]) for other in metrics[1:3]], resamples=resamples, statistics=STATISTICS
    )
    given = {"source": "answers.jsonl", "created": "2026-11-22"} | changes
    return ReportInput(rows=rows, judged=judged, agreement=found, **given)


STATISTICS = ("pearson", "kendall", "auc", "accuracy")


def random_rows(count: int, *, metrics: int, hostile: bool = True) -> list[ReportRow]:
    """Labels that scores follow with noise; 30 % of the rows of the last metric failed.

    The first rows are right answers that score lowest or wrong ones that score highest, so that they are shown, with
    hostile texts.
    """
    rng = np.random.default_rng(7)
    words = np.array(["river", "Ångström", "1492", "Paris", "the", "of", "blue", "composer", "state", "İzmir"])
    texts = [" ".join(rng.choice(words, size=40)) + "." for _ in range(200)]
    labels = rng.random(count) < 0.7
    scores = np.clip(rng.normal(0.45 + 0.3 * labels[:, None], 0.15, size=(count, metrics)), 0, 1)
    lost = rng.random(count) < 0.3
    rows = []
    for place in range(count):
        prediction, question = texts[place % 200], f"who wrote number {place // 5}?"
        if hostile and place < len(HOSTILE):
            prediction = question = HOSTILE[place]
            scores[place] = 1.0 - labels[place]
        bare = re.sub(r"[^\w\s]", "", prediction.lower()).split()
        results: dict[str, Any] = {"smile": smile(float(scores[place, 0]), " ".join(bare[3:5]))}
        results |= {
            f"metric{number}": {"score": float(scores[place, number]), "status": "OK", "matched_reference": 0}
            for number in range(1, metrics)
        }
        if lost[place] and metrics > 1:
            results[f"metric{metrics - 1}"] = failed()
        rows.append(
            ReportRow(
                id=f"row-{place}",
                question=question,
                references=[prediction if hostile and place < len(HOSTILE) else "Leonardo", texts[(place + 1) % 200]],
                prediction=prediction,
                label=float(labels[place]),
                dataset=DATASETS[place // 5 % 2],
                model=MODELS[place % 5],
                results=results,
            )
        )
    return rows


def _column(rows: list[ReportRow], metric: str, name: str) -> np.ndarray:
    found = [row.results[metric].get(name) for row in rows]
    return np.array([np.nan if value is None else float(value) for value in found])
