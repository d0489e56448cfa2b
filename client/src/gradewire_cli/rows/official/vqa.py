"""Read questions, annotations and results of visual question answering (VQA).

Formats: VQA v2 and OK-VQA (separate files for questions, annotations and results), TextVQA (questions with answers
under "data"), GQA (an object with question IDs as keys, and an answer and types for each question).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, printable

TYPE_COLUMNS: Final = ("answer_type", "question_type")
_LISTS: Final = ("questions", "annotations", "data")
_IDS: Final = ("question_id", "questionId")
_IMAGES: Final = ("image_id", "imageId")
_GIVEN: Final = ("prediction", "pred_answer", "answer")
"""Field names for a prediction, by preference. If an entry has "prediction", its "answer" is the right answer."""


def vqa_records(path: str, questions: str, annotations: str) -> Iterator[Record]:
    """Yield a row for each result in order, then a row for each unanswered question.

    A row has a problem if its question is unknown, repeated or unanswered, or has no readable annotation.

    Args:
        path: Path of the results.
        questions: Path of the questions.
        annotations: Path of the annotations, or "" if the questions file contains the answers.

    Raises:
        InputError: A file is missing, not JSON, or in an unknown format; or no question has an annotation.
    """
    asked, unusable = annotated_questions(questions, annotations)
    results = _entries(path, json_document(path))
    first: dict[str, int] = {}
    for index, entry in enumerate(results):
        place = f"{path} result {index + 1}"
        identifier = _first(entry, _IDS)
        problem = _problem(entry, identifier, asked, first) or unusable.get(identifier, "")
        if problem:
            raw = json.dumps(entry, sort_keys=True, default=repr)
            yield Record(index, place, None, problem, raw, id=identifier)
            if identifier in unusable:
                first.setdefault(identifier, index)
            continue
        first[identifier] = index
        yield Record(index, place, {**asked[identifier], "prediction": _given(entry)})
    missing = (identifier for identifier in asked if identifier not in first)
    for index, identifier in enumerate(missing, len(results)):
        problem = "has no answer in the results and is left out of the means"
        yield Record(index, f"question {printable(identifier)}", None, problem, identifier, id=identifier)


def _problem(entry: object, identifier: str, questions: Mapping[str, Any], first: Mapping[str, int]) -> str:
    if not isinstance(entry, dict):
        return "is not an object"
    if not identifier:
        return f"has no question_id (its fields: {', '.join(map(printable, entry)) or 'none'})"
    if identifier not in questions:
        return f"answers question {printable(identifier)}, which is not in the questions file"
    if identifier in first:
        return f"answers question {printable(identifier)} again, but only result {first[identifier] + 1} counts"
    if _given(entry) is None:
        return f"has no answer (its fields: {', '.join(map(printable, entry))})"
    return ""


def annotated_questions(
    path: str, annotations: str, way_out: str = ""
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return each question's fields, and the reasons why questions cannot be scored, both by question ID.

    Args:
        path: Path of the questions.
        annotations: Path of the annotations, or "" if the questions file contains the answers.
        way_out: The end of the message if no question has an answer; by default, it names --annotations.

    Raises:
        InputError: A file is missing, not JSON, or in an unknown format; or no question has an annotation.
    """
    asked: dict[str, dict[str, Any]] = {}
    unusable: dict[str, str] = {}
    for entry in _entries(path, json_document(path)):
        fields = entry if isinstance(entry, dict) else {}
        identifier = _first(fields, _IDS)
        if not identifier or not isinstance(fields.get("question"), str):
            raise InputError(f"{path}: an entry has no question_id or no question: {_printable(entry)}")
        if identifier in asked:
            raise InputError(f"{path}: question {printable(identifier)} appears twice")
        asked[identifier] = {
            "id": identifier,
            "question_id": identifier,
            "image_id": _first(fields, _IMAGES),
            "question": fields["question"],
            **_annotation({}),
        }
        if not annotations or "answers" in fields or "answer" in fields:
            _annotate(asked[identifier], fields, path, unusable)
    if annotations:
        _annotate_all(asked, annotations, unusable)
    for identifier, fields in asked.items():
        if not fields.get("references"):
            unusable.setdefault(identifier, f"answers question {printable(identifier)}, which has no answers")
    if asked and len(unusable) == len(asked):
        way_out = way_out or ("Use another --annotations" if annotations else "Use --annotations FILE")
        why = next(iter(unusable.values())).removeprefix("answers ").replace(", which", "", 1)
        raise InputError(f"{path}: {why}. {way_out}")
    return asked, unusable


def _annotate_all(questions: Mapping[str, dict[str, Any]], path: str, unusable: dict[str, str]) -> None:
    annotated: set[str] = set()
    for entry in _entries(path, json_document(path)):
        fields = entry if isinstance(entry, dict) else {}
        identifier = _first(fields, _IDS)
        if identifier not in questions:
            continue  # from another part of the data set
        if identifier in annotated:
            raise InputError(f"{path}: question {printable(identifier)} appears twice")
        annotated.add(identifier)
        _annotate(questions[identifier], fields, path, unusable)


def _annotate(question: dict[str, Any], fields: Mapping[str, Any], path: str, unusable: dict[str, str]) -> None:
    try:
        question.update({name: value for name, value in _annotation(fields).items() if value})
    except ValueError as error:
        unusable[question["id"]] = f"answers question {printable(question['id'])}, which has {error} in {path}"
    else:
        unusable.pop(question["id"], None)


def _annotation(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question's references, their confidences, and its types; raise ValueError for unreadable answers."""
    answers = fields.get("answers")
    # GQA has one answer. VQA's "answers" contains its multiple_choice_answer.
    listed = answers if isinstance(answers, list) else [fields["answer"]] if "answer" in fields else []
    texts = [each.get("answer") if isinstance(each, dict) else each for each in listed]
    if not all(isinstance(text, str) for text in texts):
        broken = next(text for text in texts if not isinstance(text, str))
        raise ValueError(f"an answer that is not text ({_printable(broken)})")
    sure = [each.get("answer_confidence") for each in listed if isinstance(each, dict)]
    types = fields.get("types")
    own = types if isinstance(types, dict) else {}
    return {
        "references": texts,
        "answer_confidence": sure if any(sure) else "",
        "answer_type": fields.get("answer_type") or own.get("structural") or "",
        "question_type": fields.get("question_type") or own.get("semantic") or "",
    }


def json_document(path: str) -> Any:
    """Return a file's JSON document; raise InputError if the file cannot be read."""
    with open_bytes(path) as stream:
        content = stream.read()
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error


def _entries(path: str, document: Any) -> Sequence[Any]:
    if isinstance(document, dict):
        listed = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
        if listed is not None:
            return list(listed)
        if document and all(isinstance(entry, dict) for entry in document.values()):  # GQA's questions by id
            return [{"question_id": identifier, **entry} for identifier, entry in document.items()]
    if isinstance(document, list):
        return document
    raise InputError(
        f'{path}: unknown format. The file must contain a list, an object with "questions", "annotations" or '
        '"data", or GQA\'s object of questions by id'
    )


def _first(fields: object, names: Sequence[str]) -> str:
    """Return the first of these fields as a string, because IDs are numbers in some files.

    A whole number may be a float, because table libraries write 7 as 7.0 if another row has no value.
    """
    values = (fields.get(name) for name in names) if isinstance(fields, dict) else ()
    whole = (int(value) if isinstance(value, float) and value.is_integer() else value for value in values)
    return next((str(value) for value in whole if isinstance(value, str | int) and not isinstance(value, bool)), "")


def _given(entry: Mapping[str, Any]) -> Any:
    return next((entry[name] for name in _GIVEN if entry.get(name) is not None), None)


def _printable(value: object) -> str:
    return printable(json.dumps(value, default=repr)[:80])
