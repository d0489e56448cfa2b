"""Samples of lmms-eval, as its --log_samples writes them: without their documents, and without names of filters."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gradewire._rows import is_of_numbers, unpacked_list
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, jsonl_records
from gradewire_cli.rows.official.samples import (
    category_of,
    checked,
    columns_of,
    filtered,
    listed,
    numbered,
    option_named,
    option_position,
    options_in,
    question_of,
    references_of,
)

TYPE_COLUMNS: Final = ("task", "category", "filter")
PATTERNS: Final = ("*samples_*.jsonl", "*samples_*.jsonl.gz")
_NAME: Final = re.compile(r"\A(?:\d{8}_\d{6}_)?(?:samples_)?(.+?)\.jsonl(?:\.gz)?\Z")
_OWN: Final = frozenset(
    {"doc_id", "doc", "target", "resps", "filtered_resps", "token_counts", "doc_hash", "input", "input_media", "filter"}
)
"""What lmms-eval writes of every sample; the rest are the metrics of its task."""


def lmms_eval_records(path: str, filter_: str = "") -> Iterator[Record]:
    """A row for each answer of each line; several where a sample has several.

    Args:
        path: Of the file.
        filter_: Only lines of this filter, by its number from 1; "" for those of all.

    Raises:
        InputError: The file is not there, holds no samples of lmms-eval, or none of the filter.
    """
    named = _NAME.match(Path(path).name)
    task = named[1] if named else ""
    with open_bytes(path) as stream:
        samples = _with_filters(checked(path, "lmms-eval", jsonl_records(stream), _lack))
        yield from numbered(row for sample in filtered(path, samples, filter_) for row in _rows(sample, task))


def _lack(fields: Mapping[str, Any]) -> str:
    if "filtered_resps" in fields and "target" in fields and "arguments" not in fields:
        return ""
    if "arguments" in fields:
        return "has arguments, which lmms-eval leaves out"
    return f"has no target with filtered_resps (it has: {listed(fields)})"


def _with_filters(samples: Iterator[Record]) -> Iterator[Record]:
    """The samples with the number of their filter: the log has all samples of the first one, then all of the next."""
    seen: Counter[str] = Counter()
    for sample in samples:
        if sample.fields is None:
            yield sample
            continue
        identifier = str(sample.fields.get("doc_id", sample.index))
        seen[identifier] += 1
        yield Record(sample.index, sample.position, {**sample.fields, "filter": str(seen[identifier])})


def _rows(sample: Record, task: str) -> Iterator[Record]:
    fields = sample.fields
    if fields is None:
        yield sample
        return
    prompt = fields.get("input") if isinstance(fields.get("input"), str) else ""
    doc = fields["doc"] if isinstance(fields.get("doc"), Mapping) else {}
    metrics = {name: value for name, value in fields.items() if name not in _OWN}
    options = options_in(prompt or "")
    filter_ = fields["filter"]
    parts = (task, fields.get("doc_id", sample.index), "" if filter_ == "1" else f"filter {filter_}")
    identifier = "/".join(str(part) for part in parts if part != "")
    answers = _answers(fields["filtered_resps"])
    if not answers:
        problem = "has log-likelihoods, and lmms-eval does not log of what: there is no answer to grade"
        yield Record(0, sample.position, None, problem, repr(fields), id=identifier)
        return
    told = {
        "task": task,
        "doc_id": fields.get("doc_id"),
        "filter": filter_,
        "category": category_of(doc, *metrics.values()),
        "question": question_of(doc) or prompt,
        "prompt": prompt,
        **({"choices": options} if options else {}),
        **{f"lmms_eval_{name}": value for name, value in metrics.items()},
        **columns_of("doc", doc),
    }
    references = _references(fields, doc, metrics, options)
    if references is not None:
        told["references"] = references
    raw = fields.get("resps", fields["filtered_resps"])
    for place, answer in enumerate(answers, 1):
        several = len(answers) > 1
        prediction = option_named(answer, options) if isinstance(answer, str) else answer
        row = {"id": f"{identifier}/{place}" if several else identifier, **told}
        place_ = f"{sample.position} answer {place}" if several else sample.position
        yield Record(0, place_, {**row, "prediction": prediction, "raw_response": raw})


def _answers(responses: Any) -> list[Any]:
    """The answers of a sample; none where they are log-likelihoods."""
    each = responses if isinstance(responses, list) else [responses]
    if _is_likelihood(each) or (each and all(map(_is_likelihood, each))):
        return []
    # Of a filter that lets several pass they stand in a list of their own.
    passed = itertools.chain(*(answer if isinstance(answer, list) else [answer] for answer in each))
    return [answer.strip() if isinstance(answer, str) else answer for answer in passed]


def _is_likelihood(response: Any) -> bool:
    if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in {"True", "False"}:
        return False
    try:
        float(response[0])
    except (TypeError, ValueError):
        return False
    return True


def _references(
    fields: Mapping[str, Any], doc: Mapping[str, Any], metrics: Mapping[str, Any], options: list[str]
) -> Any:
    """What is right: all that annotators said where the log has it, else the target."""
    target = fields["target"].strip() if isinstance(fields["target"], str) else fields["target"]
    for known in (doc, *metrics.values()):
        answers = known.get("answers") if isinstance(known, Mapping) else None
        if isinstance(answers, list) and target in [_text(answer) for answer in answers]:
            return answers
    if isinstance(target, str):
        if option_position(target, options) is not None:
            return option_named(target, options)
        named = unpacked_list(target)
        target = named if named is not None and not is_of_numbers(named) else target
    return target if target not in (None, "", "None", []) else references_of(doc)


def _text(answer: Any) -> Any:
    return answer.get("answer") if isinstance(answer, Mapping) else answer
