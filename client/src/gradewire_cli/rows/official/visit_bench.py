"""Read VisIT-Bench's files: predictions, pairs of answers with references, GPT-4's verdicts, and annotators' votes."""

import hashlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from gradewire._rows import is_missing, unpacked_list
from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, csv_records, json_records, jsonl_records, printable
from gradewire_cli.rows.official.harness import OfficialFiles, SampleLog, listed, mapping, row_id

NAME: Final = "visit-bench"
_FILE: Final = re.compile(r"\A(.+?)(?:\.[^.]+)?(?:\.gz)?\Z", re.IGNORECASE)
_MARK: Final = b"\xef\xbb\xbf"
_PAIR: Final = ("A", "B", "A_model", "B_model", "instruction")
_IMAGES: Final = ("image", "image_url", "images", "image_urls")
_CAPTIONS: Final = (
    "instruction_conditioned_caption",
    "image_dense_captions",
    "image_dense_caption",
    "images_dense_captions",
    "caption",
)
_GROUPS: Final = ("instruction_category", "family", "group")
_REFERENCES: Final = ("gpt4_prediction", "reference")
"""Columns of the reference, which GPT-4 wrote and annotators checked. `reference_output` is not read, because it is the
answer in the data set that the image is from."""
_RIGHT, _BAD_CAPTION = "human_ratings_gpt4_correct", "human_ratings_problem_in_caption"
_VERDICTS, _CHOSEN_A, _CHOSEN_B = "auto_evaluation_result", "model_selection.A", "model_selection.B"
_OTHER_COLUMNS: Final = re.compile(
    r"instruction|question|idx|visual|reference_output|output_human_annotated|is_multiple_images|image_id"
    r"|images_blip2_captions|human_ratings_problem_in_gpt4|public_images_metadata|Unnamed.*|column \d+"
)
_PREDICTION: Final = re.compile(r"(?:prediction|output|response)s?\Z", re.IGNORECASE)
_KNOWN: Final = frozenset({*_IMAGES, *_CAPTIONS, *_GROUPS, *_REFERENCES, _RIGHT, _BAD_CAPTION})
_Questions = Mapping[str, Mapping[str, Any]]


def _entries(path: str) -> Iterator[Record]:
    """Yield the objects of a JSON list, of a file with one object per line, or of a CSV file with a header."""
    with open_bytes(path) as stream:
        content = stream.read().removeprefix(_MARK)
    first = content.lstrip()[:1]
    if first == b"[":
        yield from json_records(path, io.BytesIO(content))
    elif first == b"{":
        yield from jsonl_records(io.BytesIO(content))
    else:
        yield from csv_records(path, io.BytesIO(content), (), ",")


def _value(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if not is_missing(fields.get(name)) and fields[name] != ""), None)


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() in {"true", "1", "1.0"}


def _is_left_out(fields: Mapping[str, Any]) -> bool:
    """Return True if annotators called the reference wrong or found a problem in the caption, as in the paper."""
    is_wrong = not is_missing(fields.get(_RIGHT)) and not _is_true(fields[_RIGHT])
    return is_wrong or _is_true(fields.get(_BAD_CAPTION))


def _key(fields: Mapping[str, Any]) -> str:
    """Return an id for an instruction about an image. The id is equal in all files."""
    own = fields.get("id")
    if isinstance(fields.get("answers"), Mapping) and not is_missing(own):
        return str(own)
    image = _value(fields, _IMAGES)
    listed_images = unpacked_list(image) if isinstance(image, str) else image
    first = listed_images[0] if isinstance(listed_images, list) and listed_images else image
    digest = hashlib.blake2b(repr([str(image), str(fields.get("instruction"))]).encode(), digest_size=4).hexdigest()
    return f"{PurePosixPath(str(first or 'no image')).stem}-{digest}"


def _captions(value: Any) -> list[str]:
    given = unpacked_list(value) if isinstance(value, str) else value
    if not isinstance(given, list):
        return [] if value is None else [str(value)]
    return [str(caption) for caption in given if not is_missing(caption)]


def _item(fields: Mapping[str, Any], questions: _Questions) -> dict[str, Any]:
    """Return an instruction's columns. What the file lacks comes from the data set's file."""
    key = _key(fields)
    there = {**questions.get(key, {}), **{name: value for name, value in fields.items() if not is_missing(value)}}
    reference = _value(there, _REFERENCES)
    captions = _captions(_value(there, _CAPTIONS))
    group = _value(there, _GROUPS)
    return {
        "question_id": key,
        "question": fields.get("instruction"),
        "group": "" if group is None else group,
        "references": [] if reference is None else [reference],
        **({"captions": captions} if captions else {}),
        "image": _value(there, _IMAGES),
    }


def _models_of(fields: Mapping[str, Any]) -> list[str]:
    """Return a CSV row's columns with models' answers.

    Raises:
        ValueError: There is no such column, or columns could be answers or something else.
    """
    found = [name for name in fields if name not in _KNOWN and _OTHER_COLUMNS.fullmatch(name) is None]
    if not found:
        raise ValueError(f"has no column with a model's answers (its columns: {listed(fields)})")
    if len(found) > 1 and (unknown := [name for name in found if not _PREDICTION.search(name)]):
        raise ValueError(
            f"has the column {printable(unknown[0])}, which may contain a model's answers or not. Remove it, or "
            "let the names of all columns with answers end with prediction"
        )
    return found


def _kind_of(fields: Mapping[str, Any]) -> str:
    if isinstance(fields.get("answers"), Mapping):
        return "answers"
    return "pair" if all(name in fields for name in _PAIR) else "table"


def _lack(fields: Mapping[str, Any]) -> str:
    if "instruction" not in fields:
        return f"lacks instruction (its fields: {listed(fields)})"
    if _kind_of(fields) == "table":
        try:
            _models_of(fields)
        except ValueError as error:
            return str(error)
    return ""


def _samples(path: str) -> Iterator[Record]:
    """Yield a file's rows. A pair becomes a row with its answers by model, without answers that came before."""
    seen: set[tuple[str, str]] = set()
    for record in _entries(path):
        if record.fields is None or _kind_of(record.fields) != "pair":
            yield record
            continue
        fields, key = record.fields, _key(record.fields)
        models = {str(fields[f"{side}_model"]): fields[side] for side in "AB"}
        new = {model: answer for model, answer in models.items() if (key, model) not in seen}
        seen |= {(key, model) for model in new}
        if new:
            own = {name: value for name, value in fields.items() if name not in _PAIR or name == "instruction"}
            yield replace(record, fields={**own, "id": key, "answers": new})


def _rows(questions: _Questions, record: Record, _task: str) -> Iterator[Record]:
    fields = mapping(record.fields)
    item = _item(fields, questions)
    if _is_left_out({**questions.get(item["question_id"], {}), **fields}):
        return
    given = fields.get("answers")
    answers = given if isinstance(given, Mapping) else {name: fields[name] for name in _models_of(fields)}
    for model, answer in answers.items():
        said = None if is_missing(answer) else answer
        row = {"id": row_id(item["question_id"], model), **item, "model": model, "prediction": said}
        yield Record(0, f"{record.position} {printable(str(model))}", row)


def _log(questions: _Questions) -> SampleLog:
    return SampleLog(NAME, _FILE, _lack, partial(_rows, questions), samples=_samples, kind="file")


def _questions(path: str) -> _Questions:
    """Read the data set's file, by instruction.

    Raises:
        InputError: The file cannot be read, or has no references.
    """
    found = (
        {_key(record.fields): record.fields for record in _entries(path) if record.fields is not None} if path else {}
    )
    if path and not any(_value(fields, _REFERENCES) for fields in found.values()):
        raise InputError(f"{path}: no row has a reference in {' or '.join(_REFERENCES)}. Use another --questions")
    return found


def answers(path: str, *, questions: str = "") -> Iterator[Record]:
    """Yield a row for each model's answer to each instruction. Rows that the paper leaves out are skipped.

    Args:
        path: Path of a file in one of the forms.
        questions: Path of the data set's file, which has captions, references and annotators' ratings, or "".

    Raises:
        InputError: A file is missing or in another form.
    """
    yield from _log(_questions(questions)).read(path)


def judged_pairs(path: str, *, questions: str = "") -> Iterator[Record]:
    """Yield a row for each pair with GPT-4's two verdicts or with annotators' votes, and nothing for other forms.

    Votes on the same pair of models and the same instruction become one row. Of two judged pairs with the same models
    and the same instruction, the first counts, as in the published ratings.

    Raises:
        InputError: A file is missing or unreadable.
    """
    asked = _questions(questions)
    found: dict[tuple[str, frozenset[str]], tuple[Record, dict[str, Any]]] = {}
    for record in _entries(path):
        fields = mapping(record.fields)
        if _kind_of(fields) != "pair" or not ({_VERDICTS, _CHOSEN_A} & fields.keys()):
            continue
        item = _item(fields, asked)
        sides = str(fields["A_model"]), str(fields["B_model"])
        row = {"id": item["question_id"], **item, "model_a": sides[0], "model_b": sides[1]}
        row |= {f"response_{side.lower()}": "" if is_missing(fields[side]) else fields[side] for side in "AB"}
        key = item["question_id"], frozenset(sides)
        if _CHOSEN_A in fields:
            first, known = found.setdefault(key, (record, {**row, "votes": []}))
            known.setdefault("votes", []).append(_vote(fields, is_turned=known["model_a"] != sides[0]))
            found[key] = first, known
        elif key not in found:
            found[key] = record, {**row, "by": str(fields.get("engine") or ""), **_verdict(fields[_VERDICTS], sides)}
    for index, (record, row) in enumerate(found.values()):
        yield Record(index, record.position, row)


def _vote(fields: Mapping[str, Any], *, is_turned: bool) -> str | None:
    """Return an annotator's choice, A or B of the pair's first row, or None if both or no answer was chosen."""
    chosen = _is_true(fields[_CHOSEN_A]), _is_true(fields.get(_CHOSEN_B))
    if chosen[0] == chosen[1]:
        return None
    return "A" if chosen[0] != is_turned else "B"


def _verdict(given: Any, sides: tuple[str, str]) -> dict[str, Any]:
    """Return the verdicts on both orders and the winner: the model that won more orders, otherwise a tie."""
    winners = [str(winner) for winner in given] if isinstance(given, list) else []
    names = {sides[0]: "model_a", sides[1]: "model_b"}
    orders = [
        {"first": first, "winner": names.get(winner, "tie")}
        for first, winner in zip(("model_a", "model_b"), winners, strict=False)
    ]
    won = [sum(order["winner"] == name for order in orders) for name in ("model_a", "model_b")]
    winner = None if not orders else "tie" if won[0] == won[1] else "model_a" if won[0] > won[1] else "model_b"
    return {"winner": winner, "orders": orders}


def files(questions: str = "") -> OfficialFiles:
    """Return the description of VisIT-Bench's files, with the path of the data set's file, or ""."""
    readers: list[Callable[..., Iterator[Record]]] = [
        partial(reader, questions=questions) if questions else reader for reader in (answers, judged_pairs)
    ]
    companions = {"--questions": questions} if questions else {}
    return OfficialFiles(NAME, readers[0], ("model",), pairs=readers[1], companions=companions)
