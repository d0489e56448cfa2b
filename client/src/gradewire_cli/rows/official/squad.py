"""Read questions and predictions of SQuAD 1.1 and SQuAD 2, in which some questions have no answer.

Formats of the questions: the data set's own file (questions under "data", "paragraphs", "qas"), and one object per
question as JSON or JSONL, as in Hugging Face's copies. Formats of the predictions: the evaluation's (an object with
question IDs as keys), and a list of objects with "id" and "prediction_text".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, jsonl_records, printable
from gradewire_cli.rows.official.vqa import json_document

TYPE_COLUMNS: Final = ("answer_type",)
HAS_ANSWER: Final = "has answer"
NO_ANSWER: Final = "no answer"
_PREDICTIONS: Final = ("prediction_text", "prediction", "text")


def squad_records(path: str, questions: str) -> Iterator[Record]:
    """Yield a row for each prediction in order, then a row for each question without a prediction.

    A row has a problem if its question is unknown, repeated or has no prediction. As in the evaluation of SQuAD 2, a
    question without answers has no answer, whatever its "is_impossible" says.

    Args:
        path: Path of the predictions.
        questions: Path of the questions.

    Raises:
        InputError: A file is missing or in an unknown format, or a question appears twice.
    """
    asked = _questions(questions)
    first: dict[str, int] = {}
    index = -1
    for index, (identifier, prediction) in enumerate(_predictions(path)):
        place = f"{path} prediction {index + 1}"
        named = printable(identifier)
        if identifier not in asked:
            problem = f"answers question {named}, which is not in the questions file"
        elif identifier in first:
            problem = f"answers question {named} again, but only prediction {first[identifier] + 1} counts"
        elif not isinstance(prediction, str):
            problem = f"has no text as prediction for question {named}"
        else:
            problem = ""
        if problem:
            yield Record(index, place, None, problem, json.dumps([identifier, prediction]), id=identifier)
        else:
            yield Record(index, place, {**asked[identifier], "prediction": prediction})
        first.setdefault(identifier, index)
    missing = (identifier for identifier in asked if identifier not in first)
    for number, identifier in enumerate(missing, index + 1):
        problem = "has no prediction and is left out of the means"
        yield Record(number, f"question {printable(identifier)}", None, problem, identifier, id=identifier)


def _predictions(path: str) -> Iterator[tuple[str, Any]]:
    document = json_document(path)
    if isinstance(document, dict):
        yield from document.items()
        return
    for entry in document if isinstance(document, list) else [None]:
        fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
        text = next((fields[name] for name in _PREDICTIONS if name in fields), None)
        if text is None or not isinstance(fields.get("id"), str):
            raise InputError(
                f"{path}: unknown format. The file must contain an object with a prediction by question ID, or a list "
                f'of objects with "id" and "prediction_text"'
            )
        yield fields["id"], text


def _questions(path: str) -> dict[str, dict[str, Any]]:
    """Return each question's columns by ID."""
    asked: dict[str, dict[str, Any]] = {}
    for title, entry in _entries(path):
        fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
        identifier, question = fields.get("id"), fields.get("question")
        texts = _texts(fields.get("answers"))
        if not isinstance(identifier, str) or not isinstance(question, str) or texts is None:
            shown = printable(json.dumps(entry, default=repr)[:80])
            raise InputError(f"{path}: an entry has no id, question or answers: {shown}")
        if identifier in asked:
            raise InputError(f"{path}: question {printable(identifier)} appears twice")
        asked[identifier] = {
            "id": identifier,
            "question_id": identifier,
            "title": title or str(fields.get("title") or ""),
            "question": question,
            "references": list(dict.fromkeys(text for text in texts if text.strip())),
            "answerable": bool(texts),
            TYPE_COLUMNS[0]: HAS_ANSWER if texts else NO_ANSWER,
        }
    return asked


def _texts(answers: Any) -> list[str] | None:
    """Return the answers' texts, or None if the answers are missing or in an unknown format."""
    if isinstance(answers, dict):
        texts = answers.get("text")
    elif isinstance(answers, list):
        texts = [each.get("text") if isinstance(each, dict) else each for each in answers]
    else:
        return None
    return texts if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def _entries(path: str) -> Iterator[tuple[str, Any]]:
    """Yield each question with its article's title, or ""."""
    document = _document(path)
    data = document.get("data") if isinstance(document, dict) else document
    if not isinstance(data, list):
        raise InputError(f'{path}: unknown format. The file must have questions under "data", or one question per line')
    for article in data:
        if not isinstance(article, dict) or "paragraphs" not in article:
            yield "", article
            continue
        for paragraph in _listed(article["paragraphs"]):
            for entry in _listed(paragraph.get("qas") if isinstance(paragraph, dict) else None):
                yield str(article.get("title") or ""), entry


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _document(path: str) -> Any:
    try:
        return json_document(path)
    except InputError:
        with open_bytes(path) as stream:
            records = list(jsonl_records(stream))
    if problem := next((record for record in records if record.fields is None), None):
        raise InputError(f"{path}: {problem.position} {problem.problem}")
    return [record.fields for record in records]
