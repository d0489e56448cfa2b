"""Rank VisIT-Bench's models with several metrics, and compare the rankings with the paper's tables.

Runs `gradewire leaderboard` with the options after `--` for each metric, and writes the tables as Markdown. Rankings
are stored in `--kept` and reused.

With `--judge-scores`, it writes only the last section: the models as a judge's scores rank them. The scores may be of
the first instructions only, with all models' answers. Metrics are compared on the same instructions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import textwrap
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.measurements import machine
from benchmarks.common.rows import require_files
from benchmarks.common.servers import run_gradewire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDTH: Final = 120
JUDGE_SECTION: Final = "## By a judge"
BESIDE_JUDGE: Final = ("correctness", "smile:one_pass", "sbert")
METRICS: Final = ("correctness", "smile:one_pass", "sbert", "bertscore", "rouge_l", "bleu", "cider")
PUBLISHED: Final = ("visit-bench-gpt4", "visit-bench-annotators")
HEAD: Final = """# VisIT-Bench: whole tables

Ten models of VisIT-Bench (Bitton et al. 2023) by metric, and at the end by a judge. Every two answers to an instruction
are compared by their scores with the reference; only equal scores tie (`--tie-margin 0`). Ratings are Bradley-Terry's.
Intervals draw the distinct instruction texts. Correlations are with the paper's Elo ratings: by GPT-4 (table 4, ten
models) and by annotators (table 3, six models). "Order" counts the pairs of models whose printed Elo differs by more
than 60 and that the metric puts into the same order.
"""


def name_of(by: str) -> str:
    """Return a metric's file name."""
    return re.sub(r"\W", "-", by)


def rank(data: Path, by: str, kept: Path, further: list[str], prefix: str = "") -> dict[str, Any]:
    """Return the command's JSON document for a metric. A stored document is reused. `prefix` begins its file's name."""
    out = kept / f"{prefix}{name_of(by)}.json"
    if not out.exists():
        published = [word for name in PUBLISHED for word in ("--published", name)]
        run_gradewire(
            *("leaderboard", data, "--from", "visit-bench", "--by", by, "--tie-margin", "0", "--quiet"),
            *(*published, "--json", out, *further),
        )
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def judge_section(data: Path, scores: Path, kept: Path, further: list[str]) -> Iterator[str]:
    """Yield the lines of the section on a judge, whose scores `gradewire score --out` wrote to a file."""
    answers = [len(json.loads(line)["answers"]) for line in data.read_text("utf-8").splitlines()]
    rows = scores.read_text("utf-8").splitlines(keepends=True)
    done = sum(total <= len(rows) for total in accumulate(answers))
    if not done:
        raise SystemExit(f"{scores} lacks scores of the first instruction")
    part, own = kept / f"first-{done}.jsonl", kept / f"first-{done}.scores.jsonl"
    part.write_text("".join(data.read_text("utf-8").splitlines(keepends=True)[:done]), "utf-8")
    own.write_text("".join(rows[: sum(answers[:done])]), "utf-8")
    (label,) = json.loads(rows[0])["scores"]
    digest = hashlib.sha256(own.read_bytes()).hexdigest()[:12]
    documents = {label: rank(part, label, kept, [*further, "--scores", str(own)], f"{done}-{digest}-")}
    documents |= {by: rank(part, by, kept, further, f"{done}-") for by in BESIDE_JUDGE}
    judge = documents[label]
    wrong = [pair for pair in judge["published"][PUBLISHED[0]]["distant"] if not pair["is_right"]]
    listed = "; ".join(f"{pair['higher']} above {pair['lower']}" for pair in wrong) or "none"
    yield f"{JUDGE_SECTION}\n"
    yield textwrap.fill(
        f"The default judge scored each answer once, with the reference. The tables cover the first {done} of "
        f"{len(answers)} instructions ({judge['instructions']} distinct texts, {judge['pairs']} pairs), for the judge "
        f"and for metrics. {datetime.now(UTC).date()}, {machine()}.",
        WIDTH,
    )
    yield ""
    yield "```"
    yield f"# {judge['by']}"
    yield f"gradewire score FILE --from visit-bench --metrics {label} --out SCORES.jsonl --resume"
    yield "python -m benchmarks.agreement.visit_bench --data FILE --judge-scores SCORES.jsonl"
    yield "```\n"
    yield from overview(documents)
    yield ""
    yield textwrap.fill(f"Printed orders that the judge turns around: {listed}.", WIDTH)
    yield ""
    yield from ratings(documents)


def estimate(given: Mapping[str, Any], digits: int = 3) -> str:
    """Return an estimate with its interval."""
    if given["value"] is None:
        return "-"
    shown = [f"{given[name]:.{digits}f}" for name in ("value", "low", "high")]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def overview(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table with a row for each metric."""
    heads = (
        "metric",
        "Spearman, GPT-4",
        "Kendall, GPT-4",
        "Pearson, GPT-4",
        "order, GPT-4",
        "Spearman, annotators",
        "order, annotators",
        "longer wins",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for by, document in documents.items():
        gpt4, annotators = (document["published"][name] for name in PUBLISHED)
        cells = [
            estimate(gpt4["spearman"]),
            estimate(gpt4["kendall"]),
            estimate(gpt4["pearson"]),
            order(gpt4),
            estimate(annotators["spearman"]),
            order(annotators),
            estimate(document["length_bias"]["won"]),
        ]
        yield f"| `{by}` | {' | '.join(cells)} |"


def order(ranks: Mapping[str, Any]) -> str:
    """Return the number of distant pairs in the published order, of all."""
    return f"{sum(pair['is_right'] for pair in ranks['distant'])} of {len(ranks['distant'])}"


def ratings(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table with the printed ratings and each metric's ratings of each model."""
    first = next(iter(documents.values()))["published"]
    printed = {name: dict(zip(first[name]["models"], first[name]["published"], strict=True)) for name in PUBLISHED}
    yield f"| model | Elo, GPT-4 | Elo, annotators | {' | '.join(f'`{by}`' for by in documents)} |"
    yield "|---" * (3 + len(documents)) + "|"
    for model in printed[PUBLISHED[0]]:
        found = [
            next(line for line in document["models"] if line["model"] == model)["bradley_terry"]
            for document in documents.values()
        ]
        elos = [f"{printed[name][model]:.0f}" if model in printed[name] else "-" for name in PUBLISHED]
        yield f"| {model} | {' | '.join([*elos, *(estimate(each, 0) for each in found)])} |"


def main() -> None:
    """Rank by each metric and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file with the answers of several models")
    parser.add_argument("--by", nargs="+", default=METRICS)
    parser.add_argument("--kept", type=Path, default=Path(".visit-bench"), help="folder of rankings")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/visit-bench.md"))
    parser.add_argument("--judge-scores", type=Path, help="a judge's scores of the first answers in --data")
    parser.add_argument("further", nargs="*", help="options for the command, after --")
    options = parser.parse_args()
    require_files(options.data)
    options.kept.mkdir(exist_ok=True)
    written = options.out.read_text("utf-8") if options.out.exists() else ""
    metrics, _, judged = written.partition(f"\n{JUDGE_SECTION}\n")
    if options.judge_scores is not None:
        require_files(options.judge_scores)
        section = judge_section(options.data, options.judge_scores, options.kept, options.further)
        options.out.write_text(f"{metrics.rstrip()}\n\n" + "\n".join(section) + "\n", "utf-8")
        return
    documents = {by: rank(options.data, by, options.kept, options.further) for by in options.by}
    first = next(iter(documents.values()))
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    about = (
        f"{first['pairs']} pairs on {first['instructions']} distinct instruction texts, {datetime.now(UTC).date()}, "
        f"{machine()}, load {load}.\n"
    )
    lines = [
        HEAD,
        about,
        "```",
        "python -m benchmarks.agreement.visit_bench --data FILE",
        "```\n",
        "## Metrics\n",
        *overview(documents),
        "\n## Models\n",
        *ratings(documents),
    ]
    kept = f"\n{JUDGE_SECTION}\n{judged}" if judged else ""
    options.out.write_text("\n".join(lines) + "\n" + kept, "utf-8")


if __name__ == "__main__":
    main()
