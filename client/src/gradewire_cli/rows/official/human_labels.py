"""Read the files of data sets with human labels: VerifierBench, the answer equivalence data set (BEM), and EVOUNA."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, json_records, jsonl_records, parquet_records
from gradewire_cli.rows.official.harness import OfficialFiles, SampleLog, listed, named_texts, row_id

_NAME: Final = re.compile(r"\A(.+?)(?:\.[^.]+)?(?:\.gz)?\Z", re.IGNORECASE)
_MARK: Final = b"\xef\xbb\xbf"
_PARQUET: Final = (".parquet", ".pq")

_VERIFIERBENCH: Final = ("question", "gold_answer", "llm_response", "gold_judgment")
_JUDGMENTS: Final = {"A": 1, "B": 0, "C": None}
"""VerifierBench's judgments: right, wrong, and a broken question, reference or response, which is no label."""

_BEM: Final = ("question", "reference", "candidate", "score")
_SAME_EXAMPLE: Final = ("qid", *_BEM[:3])
"""Fields that are equal in all ratings of an example."""

_EVOUNA: Final = ("question", "golden_answer")
_ANSWER: Final = "answer_"
_JUDGE: Final = "judge_"


def _entries(path: str) -> Iterator[Record]:
    """Yield a file's objects: a JSON list, one object per line, or Parquet."""
    if path.lower().endswith(_PARQUET):
        yield from parquet_records(path)
        return
    with open_bytes(path) as stream:
        content = stream.read().removeprefix(_MARK)
    is_list = content.lstrip()[:1] == b"["
    yield from json_records(path, io.BytesIO(content)) if is_list else jsonl_records(io.BytesIO(content))


def _lack(needed: Sequence[str], fields: Mapping[str, Any]) -> str:
    missing = [name for name in needed if name not in fields]
    return f"lacks {' and '.join(missing)} (its fields: {listed(fields)})" if missing else ""


def _verifierbench_rows(record: Record, task: str) -> Iterator[Record]:
    fields = record.fields or {}
    judgment = fields["gold_judgment"]
    label = _JUDGMENTS.get(judgment, judgment) if isinstance(judgment, str) else judgment
    row = {
        "id": row_id(task, record.index),
        "question": fields["question"],
        "references": named_texts(fields["gold_answer"]),
        "prediction": fields["llm_response"],
        "label": label,
        "flags": ["invalid"] if judgment == "C" else [],
        "dataset": fields.get("data_source") or "",
        "domain": fields.get("domain") or "",
        "answer_type": fields.get("answer_type") or "",
    }
    yield replace(record, fields=row)


def _examples(path: str) -> Iterator[Record]:
    """Yield each example once, with the list of all its ratings as `score`."""
    first: dict[Any, Record] = {}
    scores: dict[Any, list[Any]] = {}
    for record in _entries(path):
        fields = record.fields
        # An entry that lacks a field stays alone.
        whole = fields is not None and not _lack(_BEM, fields)
        key = repr([fields.get(name) for name in _SAME_EXAMPLE]) if whole and fields else record.index
        first.setdefault(key, record)
        if whole and fields:
            scores.setdefault(key, []).append(fields["score"])
    for key, record in first.items():
        yield replace(record, fields={**(record.fields or {}), "score": scores[key]}) if key in scores else record


def _bem_rows(record: Record, task: str) -> Iterator[Record]:
    fields = record.fields or {}
    qid = fields.get("qid") or ""
    row = {
        "id": row_id(task, qid, record.index),
        "question_id": qid,
        "question": fields["question"],
        "references": [fields["reference"]],
        "prediction": fields["candidate"],
        "labels": fields["score"],
        "dataset": task,
        "context": fields.get("context"),
    }
    yield replace(record, fields=row)


def _evouna_lack(fields: Mapping[str, Any]) -> str:
    if missing := _lack(_EVOUNA, fields):
        return missing
    return "" if _systems(fields) else f"lacks answer_SYSTEM and judge_SYSTEM (its fields: {listed(fields)})"


def _systems(fields: Mapping[str, Any]) -> list[str]:
    names = (name.removeprefix(_ANSWER) for name in fields if name.startswith(_ANSWER))
    return [name for name in names if _JUDGE + name in fields]


def _evouna_rows(record: Record, task: str) -> Iterator[Record]:
    fields = record.fields or {}
    improper = bool(fields.get("improper"))
    golden = fields["golden_answer"]
    references = [part.strip() for part in golden.split("/") if part.strip()] if isinstance(golden, str) else golden
    for system in _systems(fields):
        row = {
            "id": row_id(task, record.index, system),
            "question_id": row_id(task, record.index),
            "question": fields["question"],
            "references": references,
            "prediction": fields[_ANSWER + system],
            "label": None if improper else fields[_JUDGE + system],
            "flags": ["improper"] if improper else [],
            "dataset": task,
            "model": system,
        }
        yield replace(record, position=f"{record.position} {system}", fields=row)


VERIFIERBENCH_LOG: Final = SampleLog(
    "verifierbench", _NAME, partial(_lack, _VERIFIERBENCH), _verifierbench_rows, samples=_entries, kind="file"
)
BEM_LOG: Final = SampleLog("bem", _NAME, partial(_lack, _BEM), _bem_rows, samples=_examples, kind="file")
EVOUNA_LOG: Final = SampleLog("evouna", _NAME, _evouna_lack, _evouna_rows, samples=_entries, kind="file")
FILES: Final = (
    OfficialFiles("verifierbench", VERIFIERBENCH_LOG.read, ("domain", "answer_type")),
    OfficialFiles("bem", BEM_LOG.read, ()),
    OfficialFiles("evouna", EVOUNA_LOG.read, ("model",)),
)
