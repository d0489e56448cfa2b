"""Measure our values: score rows with gradewire's own commands, and keep the tables that the page needs.

Scores and vectors stay in the work folder, so an interrupted run resumes and a complete run computes nothing again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from benchmarks.common.rows import Row, read_lines, resume_or_overwrite
from benchmarks.common.servers import GRADEWIRE, run_gradewire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
EVOUNA: Final = "evouna_dev.jsonl"
VISIT_BENCH: Final = "visit_bench_dev.jsonl"
VQA: Final = ("vqav2_smallval/questions.json", "vqav2_smallval/annotations.json")
VISUAL: Final = ROOT / "examples" / "visual_questions.jsonl"
MODELS: Final = ("chatgpt", "fid", "gpt35", "gpt4", "newbing")
HEADLINE: Final = ("gpt35", "gpt4")
ENCODERS: Final = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
KNVQA_BERTSCORE: Final = "bertscore?with_question=true"
WORDS: Final = ("exact_match", "easy_match", "lexical_match", "vqa_accuracy?consensus=direct", "rouge_l", "meteor")
EVOUNA_METRICS: Final = {"words": WORDS, "vectors": ("smile:v1", "sbert", "bertscore", KNVQA_BERTSCORE)}
FIRST_QUESTIONS: Final = 100
VISUAL_METRICS: Final = (
    *("vqa_accuracy", "soft_vqa_accuracy", "meteor", "rouge_l", "exact_match", "easy_match"),
    *("smile:v1", "sbert", "bertscore"),
)
LAVE_QUESTIONS: Final = 25
LAVE: Final = ("lave?mode=rationale", "lave?shots=1", "lave?shots=4", "lave?reference_filter=0.0")
EVERY_VISUAL: Final = 2
SAMPLED_QUESTIONS: Final = {"encoders": 30, "judge": 50}
FIRST_REFERENCES: Final = 3
_ABOUT_ROWS: Final = re.compile(
    r"^\*\*(?:Proposed flags|Wrong verdicts|Misses)\b.*?(?=^\*\*|^```|\Z)", re.MULTILINE | re.DOTALL
)
_MEASURED: Final = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Work:
    """Folders of a run.

    Attributes:
        data: Labelled rows.
        kept: Scores, vectors and tables of earlier runs.
    """

    data: Path
    kept: Path

    def written(self, name: str, rows: Iterable[Row]) -> Path:
        """Write rows to a file of the work folder, and return its path."""
        path = self.kept / f"{name}.rows.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    def scored(self, name: str, rows: Path, metrics: Sequence[str], *more: object) -> Path:
        """Score rows, or continue an earlier run, and return the file with the scores."""
        wanted = ",".join(metrics)
        # Different metrics or rows get a different file; otherwise, --resume refuses to mix scores.
        digest = hashlib.blake2b(wanted.encode() + rows.read_bytes(), digest_size=4).hexdigest()
        out = self.kept / f"{name}-{digest}.jsonl"
        run_gradewire(
            *("score", rows, "--embedded", "--metrics", wanted, "--out", out, "--fail-on", "never", *more),
            *("--deadline-s", "3600", "--disk-directory", self.kept / "store", resume_or_overwrite(out)),
        )
        return out

    def table(self, name: str, *command: object) -> str:
        """Run a command that writes Markdown, and return its tables of statistics and the metrics' identifiers."""
        out = self.kept / f"{name}.md"
        run_gradewire(*command, "--quiet", "--markdown", out)
        return without_rows(out.read_text("utf-8"))


@dataclass(frozen=True)
class Step:
    """A part of the measurement.

    Attributes:
        papers: Papers whose tables use the step.
        about: What the step does, for the list of steps.
        files: Files of the data folder that the step needs.
        run: Returns the content of the step's blocks in benchmarks/results/papers.md by name.
    """

    name: str
    papers: tuple[str, ...]
    about: str
    files: tuple[str, ...]
    run: Callable[[Work], dict[str, str]]


def without_rows(tables: str) -> str:
    """Leave out the tables that list or count single rows: flags, wrong verdicts and misses."""
    return _ABOUT_ROWS.sub("", tables)


def first_questions(rows: Iterable[Row], models: Sequence[str], questions: int) -> list[Row]:
    """Return the rows of these models on the first `questions` questions of each data set that all models answered."""
    return _chosen(rows, models, questions, key=None)


def sampled(rows: Iterable[Row], models: Sequence[str], questions: int) -> list[Row]:
    """Return the rows of these models on `questions` questions of each data set, drawn by a hash of the question."""
    return _chosen(rows, models, questions, key=lambda key: (key[0], hashlib.blake2b(key[1].encode()).digest()))


def evouna(work: Work) -> dict[str, str]:
    """Compare verdicts without a judge with the annotators of EVOUNA, on the first questions of each data set."""
    chosen = first_questions(read_lines(work.data / EVOUNA), MODELS, FIRST_QUESTIONS)
    rows = work.written("evouna", chosen)
    scores = [f"--scores={work.scored(f'evouna-{name}', rows, metrics)}" for name, metrics in EVOUNA_METRICS.items()]
    accuracy = work.kept / "accuracy.json"
    cuts = ("--cut", f"{KNVQA_BERTSCORE}=0.5")
    return {
        "evouna-accuracy": work.table("accuracy", "bench", "accuracy", rows, *scores, "--json", accuracy),
        "evouna-ranks": ranks(json.loads(accuracy.read_text("utf-8"))),
        "evouna-verdicts": work.table("verdicts", "bench", "knvqa", rows, *scores, *cuts),
    }


def ranks(accuracy: Mapping[str, Any]) -> str:
    """Return the ranks by each metric of the two models that annotators find closest, as a table.

    `accuracy` is the JSON document of `gradewire bench accuracy`. A model's accuracy is the mean over data sets.
    """
    by_annotators = _by_model((cell["model"], cell["human"]["value"]) for cell in accuracy["human"])
    pairs = itertools.combinations(sorted(by_annotators, key=by_annotators.__getitem__, reverse=True), 2)
    better, other = min(pairs, key=lambda pair: by_annotators[pair[0]] - by_annotators[pair[1]])
    lines = [f"| metric | {better} | {other} |", "|---|---:|---:|", "| annotators | 1 | 2 |"]
    for each in accuracy["evaluators"]:
        found = _by_model((cell["model"], cell["accuracy"]["value"]) for cell in each["cells"])
        first = 1 if found[better] > found[other] else 2
        lines.append(f"| {each['evaluator']} | {first} | {3 - first if found[better] != found[other] else first} |")
    return "\n".join(lines)


def encoders(work: Work) -> dict[str, str]:
    """Compare both encoders on the same rows."""
    rows = work.written("encoders", sampled(read_lines(work.data / EVOUNA), MODELS, SAMPLED_QUESTIONS["encoders"]))
    metrics = [f"{metric}?model={model}" for model in ENCODERS for metric in ("smile:fast", "sbert")]
    scores = work.scored("encoders", rows, metrics)
    command = ("agree", rows, f"--scores={scores}", "--statistics", "pearson,kendall", "--compare")
    return {"encoders": work.table("encoders", *command, metrics[2], metrics[0])}


def judge(work: Work) -> dict[str, str]:
    """Compare SMILE with generated sentences, and the judge's grades, on the same rows."""
    drawn = sampled(read_lines(work.data / EVOUNA), HEADLINE, SAMPLED_QUESTIONS["judge"])
    rows = work.written("judge", ({**row, "references": row["references"][:FIRST_REFERENCES]} for row in drawn))
    prepare = (GRADEWIRE, "prepare", rows, "--embedded", "--generate", "--disk-directory", work.kept / "store")
    done = subprocess.run([str(word) for word in prepare], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    both = ("smile:v1?synthetic=none", "smile:v1?synthetic=prepared")
    smile = work.scored("judge-smile", rows, both, "--reference-set", done.stdout.strip())
    words = work.scored("judge-words", rows, (*WORDS, "sbert", "bertscore"))
    grade = work.scored("judge-grade", rows, ("judge_grade",))
    scores = [f"--scores={path}" for path in (smile, words, grade)]
    agree = ("agree", rows, *scores, "--statistics", "pearson,kendall")
    return {
        "judge-agreement": work.table("judge-agreement", *agree, "--compare", both[1], both[0]),
        "judge-accuracy": work.table("judge-accuracy", "bench", "accuracy", rows, *scores),
        "judge-deviation": work.table(
            "judge-deviation", "bench", "accuracy", rows, *scores, "--against", "judge_grade"
        ),
    }


def visual(work: Work) -> dict[str, str]:
    """Compare metrics and LAVE on every second of the held-out answers about pictures in examples."""
    rows = work.written("visual", _held_out())
    scores = (
        work.scored("visual-plain", rows, VISUAL_METRICS),
        work.scored("visual-lave", rows, ("lave",)),
    )
    statistics = ("--statistics", ",".join(_MEASURED))
    command = ("agree", rows, *(f"--scores={path}" for path in scores), *statistics)
    return {"visual": work.table("visual", *command)}


def vqa(work: Work) -> dict[str, str]:
    """Compare metrics and LAVE with VQA v2's annotators. LAVE grades the answers to a few questions."""
    rows, few = _vqa_rows(work)
    plain = ",".join(VISUAL_METRICS)
    statistics = ("--statistics", ",".join(_MEASURED), "--group-by", "group")
    return {
        "vqa": work.table("vqa", "agree", *rows, "--metrics", plain, *statistics),
        "vqa-lave": work.table("vqa-lave", "agree", *rows, *few, "--metrics", f"{plain},lave", *statistics),
    }


def lave(work: Work) -> dict[str, str]:
    """Change LAVE's prompt by parts, on the answers of step `vqa` that LAVE grades."""
    rows, few = _vqa_rows(work)
    # Each variant is a run of its own, so that variants do not evict each other's prefixes. The store has `lave`'s
    # answers. Beside it, a variant has its whole name.
    tables = [
        work.table(
            f"lave-{place}", "agree", *rows, *few, "--metrics", f"lave,{each}", "--statistics", "spearman,kendall"
        )
        for place, each in enumerate(LAVE)
    ]
    return {"lave": "\n\n".join(tables)}


def _vqa_rows(work: Work) -> tuple[Sequence[object], Sequence[object]]:
    """Return the options for all rows of VQA v2's annotators, and for only those that LAVE grades."""
    questions, annotations = (work.data / name for name in VQA)
    ids = sorted(str(each["question_id"]) for each in json.loads(questions.read_text("utf-8"))["questions"])
    drawn = sorted(ids, key=lambda each: hashlib.blake2b(each.encode()).digest())[:LAVE_QUESTIONS]
    rows = (annotations, "--from", "vqa-annotators", "--questions", questions, "--map", "group=answer_type")
    engine = ("--embedded", "--disk-directory", work.kept / "store")
    return (*rows, *engine), ("--where", f"question_id={','.join(drawn)}")


def visit_bench(work: Work) -> dict[str, str]:
    """Rank VisIT-Bench's models by the program that writes benchmarks/results/visit-bench.md."""
    data = work.data / VISIT_BENCH
    _run_program("benchmarks.agreement.visit_bench", "--data", data, "--kept", work.kept / "visit")
    return {}


STEPS: Final = (
    Step("evouna", ("smile", "knvqa"), "metrics without a judge on EVOUNA", (EVOUNA,), evouna),
    Step("encoders", ("smile",), "two encoders on EVOUNA", (EVOUNA,), encoders),
    Step("judge", ("smile",), "generated sentences and grades by the judge on EVOUNA", (EVOUNA,), judge),
    Step("visual", ("smile", "lave"), "metrics and LAVE on answers about pictures", (), visual),
    Step("vqa", ("smile", "lave"), "metrics and LAVE on answers of VQA v2's annotators", VQA, vqa),
    Step("lave", ("lave",), "LAVE's prompt by parts", VQA, lave),
    Step("visit-bench", ("visit-bench",), "ten models of VisIT-Bench", (VISIT_BENCH,), visit_bench),
)


def _chosen(
    rows: Iterable[Row], models: Sequence[str], questions: int, key: Callable[[tuple[str, str]], Any] | None
) -> list[Row]:
    by_question: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row["model"] in models:
            by_question[row["dataset"], row["question"]][row["model"]] = row
    whole = [each for each, answers in by_question.items() if len(answers) == len(models)]
    taken: dict[str, int] = defaultdict(int)
    chosen: list[Row] = []
    for each in whole if key is None else sorted(whole, key=key):
        if taken[each[0]] < questions:
            taken[each[0]] += 1
            chosen += (by_question[each][model] for model in models)
    return chosen


def _by_model(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    of_model: dict[str, list[float]] = defaultdict(list)
    for model, value in values:
        of_model[model].append(value)
    return {model: fmean(found) for model, found in of_model.items()}


def _held_out() -> list[Row]:
    return [row for row in read_lines(VISUAL) if row["half"] == "held_out"][::EVERY_VISUAL]


def _run_program(module: str, *arguments: object) -> None:
    """Run a program of benchmarks; if it fails, exit with its code."""
    command = (sys.executable, "-m", module, *map(str, arguments))
    if code := subprocess.run(command, check=False).returncode:
        raise SystemExit(code)
