"""Read the files of data sets with human labels: VerifierBench, the answer equivalence data set (BEM), and EVOUNA."""

import io
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal

from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Record, json_records, jsonl_records, parquet_records
from gradewire_cli.rows.official.harness import OfficialFiles, SampleLog, listed, named_texts, row_id, without_answer

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
_IMPROPER: Final = "improper"
_TRUTHS: Final = {
    "true": True,
    "yes": True,
    "1": True,
    "1.0": True,
    "false": False,
    "no": False,
    "0": False,
    "0.0": False,
}
_NO_TRUTHS: Final = frozenset({"", "none", "null", "nan"})


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


def _truth(fields: Mapping[str, Any], name: str) -> bool | None:
    """Return a field's truth value, or None if it is missing; raise ValueError for other values."""
    value = fields.get(name)
    text = str(value).strip().lower() if value is None or isinstance(value, bool | int | float | str) else "?"
    if text in _NO_TRUTHS:
        return None
    if text not in _TRUTHS:
        shown = reprlib.repr(value)
        raise ValueError(f"has {shown} as {name}. Write true or false (yes and no, or 1 and 0, are also read)")
    return _TRUTHS[text]


def _evouna_rows(record: Record, task: str) -> Iterator[Record]:
    fields = record.fields or {}
    golden = fields["golden_answer"]
    references = split_references(golden) if isinstance(golden, str) else golden
    for system in _systems(fields):
        placed = replace(record, position=f"{record.position} {system}")
        identifier = row_id(task, record.index, system)
        try:
            improper, judgment = _truth(fields, _IMPROPER), _truth(fields, _JUDGE + system)
        except ValueError as error:
            yield without_answer(placed, identifier, str(error))
            continue
        row = {
            "id": identifier,
            "question_id": row_id(task, record.index),
            "question": fields["question"],
            "references": references,
            "prediction": fields[_ANSWER + system],
            "label": None if improper else judgment,
            "flags": [_IMPROPER] if improper else [],
            "dataset": task,
            "model": system,
        }
        yield replace(placed, fields=row)


_URL_OR_SLASH: Final = re.compile(r"\b[a-z][a-z+.-]{0,20}://\S+|\bwww\.\S+|(?P<slash>/)", re.IGNORECASE)
_LAST_NUMBER: Final = re.compile(r"\d[\d,.]*\Z")
_FIRST_NUMBER: Final = re.compile(r"\A\d[\d,.]*")
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_STARTS_PHRASE: Final = re.compile(r"(?:the|an?|in|on|at|by|from|for|since|until|up to)\s+\S", re.IGNORECASE)
_SHORT: Final = 2
"""Maximum length of "km", "mg" and "Wh", which a slash and a unit of several letters may follow."""
_UNIT_BELOW: Final = re.compile(r"[kmc]?[gm]|[mcdh]?[lL]|[ckm]?m[23²³]|s[2²]|min|mol|ha")
"""Units that stand below others: "mg/dl"."""
_LINKED: Final = frozenset({("and", "or"), ("und", "oder"), ("et", "ou")})
_DOUBTFUL: Final = 3
"""Maximum length of "GNU" and "180". A slash next to such a word or number is doubtful."""
Slash = Literal["separates", "belongs", "doubtful"]


def split_references(text: str) -> list[str]:
    """Return the references that a text joins with "/", each without outer blanks, in order and without duplicates.

    A slash that belongs to a reference stays: in "km/h", "and/or", "3/4", a date or a URL. If a slash is doubtful
    ("GNU/Linux", "AC/DC", "NY/LA"), the list has the parts and, behind all parts, the text that keeps the slash.
    """
    pieces = _pieces(text)
    slashes = [_kind(*pair) for pair in pairwise(pieces)]
    parts = _joined(pieces, [kind == "belongs" for kind in slashes])
    whole = _joined(pieces, [kind != "separates" for kind in slashes])
    return list(dict.fromkeys(part for part in (*parts, *whole) if part))


def _pieces(text: str) -> list[str]:
    """Return the text between slashes. A URL's slashes do not count."""
    places = [match.start() for match in _URL_OR_SLASH.finditer(text) if match["slash"]]
    return [text[start + 1 : end] for start, end in pairwise([-1, *places, len(text)])]


def _joined(pieces: Sequence[str], keeps: Sequence[bool]) -> Iterator[str]:
    found = pieces[0]
    for piece, keep in zip(pieces[1:], keeps, strict=True):
        if not keep:
            yield found.strip()
        found = f"{found}/{piece}" if keep else piece
    yield found.strip()


def _kind(before: str, after: str) -> Slash:
    """Return the kind of the slash between two pieces of a text."""
    if not before.strip() or not after.strip() or before[-1].isspace() or after[0].isspace():
        return "separates"
    last, first = _LAST_NUMBER.search(before), _FIRST_NUMBER.match(after)
    if last and first:
        return _between_numbers(last[0], first[0], after)
    left, right = _letters(before.rsplit(maxsplit=1)[-1]), _letters(after.split(maxsplit=1)[0])
    if left.casefold() == right.casefold() or _STARTS_PHRASE.match(after):
        return "separates"
    if last or first:
        # "5/five" and "1977/May 1977", but "24/h".
        word = right if last else left
        if word.isdecimal() or len(word) == _SHORT:  # "$5/$6", "4 in/4-inch"
            return "doubtful"
        return "separates" if len(word) > _SHORT else "belongs"
    return _between_words(left, right)


def _between_numbers(last: str, first: str, after: str) -> Slash:
    """Return the kind of a slash between "1938" and "1933", "3" and "4", or "1918" and "30 October 1918"."""
    lengths = [len(_letters(number)) for number in (last, first)]
    is_date = lengths[0] > _DOUBTFUL and _YEAR.search(after) is not None
    return "doubtful" if min(lengths) >= _DOUBTFUL or is_date else "belongs"


def _between_words(left: str, right: str) -> Slash:
    # In a script without capitals, few characters are a word. Emoji have no letters at all.
    has_no_case = any(word.upper() == word.lower() for word in (left, right))
    if (left.lower(), right.lower()) in _LINKED:
        return "belongs"
    if has_no_case or min(len(left), len(right)) > _DOUBTFUL:
        return "separates"
    is_unit = (len(right) == 1 and right.islower()) or (
        len(left) <= _SHORT and _UNIT_BELOW.fullmatch(right) is not None
    )
    return "belongs" if is_unit or len(left) == len(right) == 1 else "doubtful"


def _letters(word: str) -> str:
    return "".join(letter for letter in word if letter.isalnum())


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
