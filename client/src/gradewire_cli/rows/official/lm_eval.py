"""Read samples that lm-eval (Language Model Evaluation Harness) wrote with --log_samples."""

import json
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gradewire._rows import unpacked_list
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official.harness import (
    OfficialFiles,
    SampleLog,
    answer_rows,
    choice_texts,
    columns_of,
    letter_position,
    listed,
    mapping,
    named_texts,
    option_named,
    option_position,
    question_of,
    references_of,
    row_id,
    stripped,
    without_answer,
)

TYPE_COLUMNS: Final = ("task", "filter")
PATTERNS: Final = ("samples_*.jsonl", "samples_*.jsonl.gz")
_NAME: Final = re.compile(r"\A(?:samples_)?(.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl(?:\.gz)?\Z")
_UNFILTERED: Final = "none"
_TRUTH: Final = {"False": "0", "True": "1"}
_FINAL: Final = "####"


def prompt_of(request: Sequence[Any]) -> str:
    """Return a request's prompt, or "". For chat servers, the prompt is in a list."""
    first = request[0] if request else None
    prompt = first[0] if isinstance(first, list) and first else first
    return prompt if isinstance(prompt, str) else ""


def last_user_message(prompt: str) -> str:
    """Return the user's last message if the prompt is a chat in JSON, otherwise the prompt."""
    if not prompt.startswith("[{"):
        return prompt
    try:
        turns = json.loads(prompt)
    except (ValueError, RecursionError):
        return prompt
    said = [turn.get("content") for turn in turns if isinstance(turn, Mapping) and turn.get("role") == "user"]
    return said[-1] if said and isinstance(said[-1], str) else prompt


def final_answer(target: str) -> str:
    """Return the answer after "####" in a worked solution's last line (GSM8K's format), otherwise the target."""
    solution, mark, answer = target.rpartition(_FINAL)
    worked = bool(mark) and solution.endswith("\n") and bool(solution.strip())
    return answer.strip() if worked and answer.strip() and "\n" not in answer.strip() else target


def options_of(doc: Mapping[str, Any]) -> list[str]:
    """Return a document's choices in the order of their letters; [] if none exist or one of them is only a letter."""
    for name in ("options", "choices"):
        given = doc.get(name)
        if isinstance(given, Mapping):
            by_letter = list(given) == list(string.ascii_uppercase[: len(given)])
            given = list(given.values()) if by_letter else given.get("text")
        if (
            isinstance(given, list)
            and len(given) > 1
            and all(isinstance(each, str) and letter_position(each) is None for each in given)
        ):
            return given
    return []


def marked_positions(doc: Mapping[str, Any], offered: Sequence[str]) -> list[int]:
    """Return the positions of choices that a document marks with 1 (TruthfulQA's format), or [] without marks."""
    for each in doc.values():
        choices, labels = (each.get("choices"), each.get("labels")) if isinstance(each, Mapping) else (None, None)
        if (
            isinstance(choices, list)
            and isinstance(labels, list)
            and len(labels) == len(choices)
            and [str(choice).strip() for choice in choices] == list(offered)
            and all(label in (0, 1) for label in labels)
        ):
            return [place for place, label in enumerate(labels) if label == 1]
    return []


def names_fields(target: Any, doc: Mapping[str, Any]) -> bool:
    """Return True if a target lists field names instead of an answer, like lm-eval's targets for DROP."""
    return any(isinstance(each, Mapping) and each and target == ",".join(map(str, each)) for each in doc.values())


def in_one_text(answers: Any) -> Any:
    """Join each answer's parts (such as DROP's spans) into one string. Return answers without parts unchanged."""
    if not isinstance(answers, list) or not all(isinstance(each, list) for each in answers):
        return answers
    return [", ".join(map(str, parts)) for parts in answers]


def right_positions(target: Any, offered: Sequence[str], likeliest: int, accuracy: Any) -> list[int]:
    """Return the positions of the right choices, or [] if the target names no choice.

    Args:
        target: The logged target: a choice's position or text, a list of positions, or a truth
            value (True for the second of two choices).
        offered: Texts of the choices.
        likeliest: Position of the model's choice.
        accuracy: lm-eval's grade for the model's choice (metric acc). It shows if a numeric target is a position or
            a choice's text.
    """
    text = str(target).strip()
    named = {_number(each) for each in (target if isinstance(target, list) else unpacked_list(text) or [text])}
    by_number = [place for place in range(len(offered)) if str(place) in named]
    by_text = [place for place, each in enumerate(offered) if each == text][:1]
    if text in _TRUTH and by_text:
        return by_text
    if by_number and by_text and accuracy in (0, 1):
        fitting = [places for places in (by_number, by_text) if (likeliest in places) == bool(accuracy)]
        return fitting[0] if fitting else by_number
    return by_number or by_text


def _number(target: Any) -> str:
    """Convert a target, which may be a truth value or a float such as 1.0, to a position in the same way as lm-eval."""
    text = str(target).strip()
    return _TRUTH.get(text, text.removesuffix(".0"))


def _lack(fields: Mapping[str, Any]) -> str:
    if isinstance(fields.get("doc"), Mapping) and isinstance(fields.get("filtered_resps"), list):
        return ""
    return f"lacks doc or filtered_resps (its fields: {listed(fields)})"


def _rows(sample: Record, task: str) -> Iterator[Record]:
    fields = mapping(sample.fields)
    requests = _requests(fields.get("arguments"))
    prompt = next((prompt for request in requests if (prompt := prompt_of(request))), "")
    filter_ = str(fields.get("filter", _UNFILTERED))
    identifier = row_id(task, fields.get("doc_id", sample.index), "" if filter_ == _UNFILTERED else filter_)
    columns = {
        "task": task,
        "doc_id": fields.get("doc_id"),
        "filter": filter_,
        "question": question_of(fields["doc"]) or last_user_message(prompt),
        "prompt": prompt,
        "target": fields.get("target"),
        **_metrics(fields),
        **columns_of("doc", fields["doc"]),
    }
    if requests and all(map(_is_for_log_likelihood, requests)):
        yield _multiple_choice_row(sample, {"id": identifier, **columns}, requests)
        return
    if requests and all(len(request) == 1 for request in requests):  # a request for an answer also has stop words
        yield without_answer(sample, identifier, "is a log-likelihood, not an answer")
        return
    answers = _answers(fields, requests)
    if not answers:
        yield without_answer(sample, identifier, "has no answer in its filtered_resps")
    target, options = _target(fields), options_of(fields["doc"])
    if isinstance(target, str) and option_position(target, options) is not None:
        # The filter may have picked a letter that the answer only discusses, so the whole answer is graded.
        for (answer, raw), row in zip(answers, answer_rows(sample, identifier, columns, answers), strict=True):
            said = raw if isinstance(raw, str) and raw.strip() else answer
            extracted = {
                "references": option_named(target, options),
                "choices": options,
                "prediction": option_named(stripped(said), options),
                "extracted": option_named(answer, options),
            }
            yield replace(row, fields={**mapping(row.fields), **extracted})
        return
    if target is not None:
        columns["references"] = target
    yield from answer_rows(sample, identifier, columns, answers)


def _multiple_choice_row(sample: Record, columns: dict[str, Any], requests: Sequence[Sequence[Any]]) -> Record:
    fields = mapping(sample.fields)
    offered = [str(request[1]).strip() for request in requests]
    half = len(offered) // 2
    # acc_mutual_info repeats the requests without the question.
    if half and offered[:half] == offered[half:] and not any(request[0] for request in requests[half:]):
        offered = offered[:half]
    likelihoods = [_likelihood(response) for response in fields["filtered_resps"][: len(offered)]]
    problem = ""
    if len(offered) == 1:
        problem = "is the log-likelihood of a single continuation, not an answer"
    elif len(set(offered)) == 1:
        problem = "asks which prompt fits, but its target does not name a prompt"
    elif len(likelihoods) < len(offered) or any(map(math.isnan, likelihoods)):
        problem = "has a choice without a log-likelihood"
    if problem:
        return without_answer(sample, columns["id"], problem)
    texts = choice_texts(offered, fields["doc"].get("choices"), columns["prompt"])
    likeliest = likelihoods.index(max(likelihoods))
    row = {**columns, "choices": texts, "prediction": texts[likeliest]}
    right = marked_positions(fields["doc"], offered) or right_positions(
        fields.get("target"), offered, likeliest, fields.get("acc")
    )
    if right:
        row["references"] = [texts[place] for place in right]
    return Record(0, sample.position, row)


def _answers(fields: Mapping[str, Any], requests: Sequence[Sequence[Any]]) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    resps = fields.get("resps")
    raws = resps if isinstance(resps, list) else []
    for place, response in enumerate(fields["filtered_resps"]):
        if place < len(requests) and _is_for_log_likelihood(requests[place]):
            continue
        raw = raws[place] if place < len(raws) else None
        passed = response if isinstance(response, list) else [response]
        said = raw if isinstance(raw, list) and raw else [raw]
        found += [(stripped(each), said[turn] if turn < len(said) else said[0]) for turn, each in enumerate(passed)]
    return found


def _target(fields: Mapping[str, Any]) -> Any:
    target = named_texts(stripped(fields.get("target")))
    own = in_one_text(references_of(fields["doc"]))
    if target == "None" and (own is not None or "None" not in fields["doc"].values()):
        return own
    # IFEval's target 0 is meaningless, because IFEval checks answers against instructions.
    if "instruction_id_list" in fields["doc"] or names_fields(target, fields["doc"]):
        return own
    if isinstance(target, str):
        target = final_answer(target)
    return target if target not in (None, "", []) else own


def _requests(arguments: Any) -> list[list[Any]]:
    """Return the arguments of each request. lm-eval logs objects in new versions and lists in old versions."""
    listed_ = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    if not isinstance(listed_, list):
        return []
    return [
        list(each.values()) if isinstance(each, Mapping) else each if isinstance(each, list) else [each]
        for each in listed_
    ]


def _is_for_log_likelihood(request: Sequence[Any]) -> bool:
    return len(request) > 1 and isinstance(request[1], str)


def _likelihood(response: Any) -> float:
    value = response[0] if isinstance(response, list) and response else response
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _metrics(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = fields["metrics"] if isinstance(fields.get("metrics"), list) else ()
    return {f"lm_eval_{name}": fields.get(name) for name in names if isinstance(name, str)}


LOG: Final = SampleLog("lm-eval", _NAME, _lack, _rows)
FILES: Final = OfficialFiles("lm-eval", LOG.read, TYPE_COLUMNS, PATTERNS, has_filters=True)
