"""Read the samples in lmms-eval's logs (--log_samples), which have no filter names and usually no documents."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.harness import (
    OfficialFiles,
    SampleLog,
    answer_rows,
    category_of,
    columns_of,
    listed,
    mapping,
    named_texts,
    option_named,
    option_position,
    options_in,
    question_of,
    references_of,
    row_id,
    stripped,
    without_answer,
)

TYPE_COLUMNS: Final = ("task", "category", "filter")
PATTERNS: Final = ("*samples_*.jsonl", "*samples_*.jsonl.gz")
_NAME: Final = re.compile(r"\A(?:\d{8}_\d{6}_)?(?:samples_)?(.+?)\.jsonl(?:\.gz)?\Z")
_OWN: Final = frozenset(
    {"doc_id", "doc", "target", "resps", "filtered_resps", "token_counts", "doc_hash", "input", "input_media", "filter"}
)
"""Fields that lmms-eval writes for every sample. All other fields are the task's metrics."""


def _lack(fields: Mapping[str, Any]) -> str:
    if "arguments" in fields:
        return "has arguments, which lmms-eval never logs"
    if "filtered_resps" in fields and "target" in fields:
        return ""
    return f"lacks target or filtered_resps (its fields: {listed(fields)})"


def _with_filters(samples: Iterator[Record]) -> Iterator[Record]:
    """Add filter numbers to samples. The log contains all samples for filter 1, then for filter 2, and so on."""
    seen: Counter[str] = Counter()
    for sample in samples:
        if sample.fields is None:
            yield sample
            continue
        identifier = str(sample.fields.get("doc_id", sample.index))
        seen[identifier] += 1
        yield Record(sample.index, sample.position, {**sample.fields, "filter": str(seen[identifier])})


def _rows(sample: Record, task: str) -> Iterator[Record]:
    fields = mapping(sample.fields)
    prompt = fields["input"] if isinstance(fields.get("input"), str) else ""
    doc, filter_ = mapping(fields.get("doc")), fields["filter"]
    metrics = {name: value for name, value in fields.items() if name not in _OWN}
    options = options_in(prompt)
    identifier = row_id(task, fields.get("doc_id", sample.index), "" if filter_ == "1" else f"filter {filter_}")
    answers = _answers(fields["filtered_resps"])
    if not answers:
        problem = "has log-likelihoods, but no answer, because lmms-eval does not log their continuations"
        yield without_answer(sample, identifier, problem)
        return
    references = _references(fields, doc, metrics, options)
    columns = {
        "task": task,
        "doc_id": fields.get("doc_id"),
        "filter": filter_,
        "category": category_of(doc, *metrics.values()),
        "question": question_of(doc) or prompt,
        "prompt": prompt,
        **({"choices": options} if options else {}),
        **{f"lmms_eval_{name}": value for name, value in metrics.items()},
        **columns_of("doc", doc),
        **({} if references is None else {"references": references}),
    }
    raw = fields.get("resps", fields["filtered_resps"])
    yield from answer_rows(sample, identifier, columns, [(option_named(each, options), raw) for each in answers])


def _answers(responses: Any) -> list[Any]:
    each = responses if isinstance(responses, list) else [responses]
    if _is_likelihood(each) or (each and all(map(_is_likelihood, each))):
        return []
    # Filters wrap several answers in a list.
    return list(map(stripped, itertools.chain(*(answer if isinstance(answer, list) else [answer] for answer in each))))


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
    target = stripped(fields["target"])
    for known in (doc, *metrics.values()):
        answers = mapping(known).get("answers")
        if isinstance(answers, list) and target in map(_text, answers):
            return answers
    if isinstance(target, str) and option_position(target, options) is not None:
        return option_named(target, options)
    target = named_texts(target)
    return target if target not in (None, "", "None", []) else references_of(doc)


def _text(answer: Any) -> Any:
    return answer.get("answer") if isinstance(answer, Mapping) else answer


LOG: Final = SampleLog("lmms-eval", _NAME, _lack, _rows, with_filters=_with_filters)
FILES: Final = OfficialFiles("lmms-eval", LOG.read, TYPE_COLUMNS, PATTERNS, has_filters=True)
