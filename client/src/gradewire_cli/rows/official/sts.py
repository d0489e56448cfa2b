"""Read the files of the semantic textual similarity tasks: STS 2012 to 2016, the STS benchmark and SICK."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import open_bytes
from gradewire_cli.rows.formats import Reading, Record, read_file
from gradewire_cli.rows.official.harness import OfficialFiles, row_id

NAME: Final = "sts"
BENCHMARK: Final = "STS-B"
SICK: Final = "SICK-R"
SUBSETS: Final[Mapping[str, tuple[str, ...]]] = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
    BENCHMARK: (),
    SICK: (),
}
"""The seven test sets of the STS average, with the subsets of a year. The licence of STS 2013's subset SMT keeps it out
of the usual average."""

_SEMEVAL: Final = re.compile(r"STS(?P<year>20\d\d)?\.input\.(?P<subset>.+?)\.txt(?:\.gz)?", re.IGNORECASE)
_YEAR: Final = re.compile(r"(?:sts|semeval)[-_ ]?(?:20)?(1[2-6])(?!\d)|^20(1[2-6])(?!\d)", re.IGNORECASE)
_BENCHMARK_FILE: Final = re.compile(r"sts[-_]?test\.(?:csv|tsv|txt)(?:\.gz)?", re.IGNORECASE)
_SICK_FILE: Final = re.compile(r"SICK(?:_test_annotated)?\.(?:txt|tsv|csv)(?:\.gz)?", re.IGNORECASE)
_BENCHMARK_NAME: Final = re.compile(r"sts[-_]?b(?:ench(?:mark)?)?(?![a-z])", re.IGNORECASE)
_SICK_NAME: Final = re.compile(r"sick", re.IGNORECASE)
_GRADE, _FIRST, _SECOND = 4, 5, 6  # columns of the STS benchmark, which has no header
_PAIR: Final = (("sentence1", "sentence_A"), ("sentence2", "sentence_B"), ("score", "relatedness_score"))
_TEST: Final = "TEST"
_PATTERNS: Final = (
    *("STS.input.*.txt", "STS20*.input.*.txt", "sts-test.csv", "SICK_test_annotated.txt", "SICK.txt"),
    *("test.jsonl", "test.jsonl.gz"),
)


class _Place(NamedTuple):
    """A file's task and, for a year's file, its subset."""

    task: str
    subset: str


def sts_records(path: str) -> Iterator[Record]:
    """Yield a file's pairs as labelled rows: a sentence as the reference, the other as the prediction, and the grade.

    The columns ``task`` and ``group`` have the test set (`SUBSETS`) and the year's subset. A pair without a grade,
    which SemEval did not have graded, has no label.

    Raises:
        InputError: The file cannot be read, has another form, or belongs to an unknown test set.
    """
    name = Path(path).name
    place = _place_of(path)
    if _SEMEVAL.fullmatch(name):
        pairs = _semeval_pairs(path)
    elif place.task == BENCHMARK and _BENCHMARK_FILE.fullmatch(name):
        pairs = _benchmark_pairs(path)
    elif place.task == SICK and _SICK_FILE.fullmatch(name):
        pairs = _pairs_with_names(_table(path), path)
    else:
        pairs = _pairs_with_names(read_file(path, Reading()), path)
    index = -1
    for index, record in enumerate(pairs):
        identifier = row_id(place.task, place.subset, index)
        if record.fields is None:
            yield Record(index, record.position, None, record.problem, record.raw, id=identifier)
            continue
        first, second, grade = (record.fields[column] for column in ("first", "second", "grade"))
        columns = {"id": identifier, "references": [first], "prediction": second, "label": grade}
        columns |= {"dataset": place.task, "task": place.task, "group": place.subset}
        yield Record(index, record.position, columns)
    if index < 0:
        raise InputError(f"{path} has no pairs")


def _place_of(path: str) -> _Place:
    named = _SEMEVAL.fullmatch(Path(path).name)
    if named is None:
        return _Place(_task_in(path), "")
    subset = named["subset"]
    year = named["year"] or next(filter(None, map(_year_in, reversed(Path(path).absolute().parts[:-1]))), "")
    having = [task for task, subsets in SUBSETS.items() if subset in subsets]
    task = f"STS{year[-2:]}" if year else having[0] if len(having) == 1 else ""
    if not task:
        raise InputError(f"{path}: the year of this file is unknown. Put it in a folder named STS12, STS13, …")
    if subset not in SUBSETS[task]:
        known = ", ".join(SUBSETS[task])
        raise InputError(f"{path}: {task} has no subset {subset} in the usual average (it has {known}). Leave it out")
    return _Place(task, subset)


def _year_in(part: str) -> str:
    found = _YEAR.search(part)
    return "" if found is None else found[1] or found[2]


def _task_in(path: str) -> str:
    """Return the test set that a path names: the file itself, or else the nearest folder that names one."""
    for part in reversed(Path(path).absolute().parts):
        if _BENCHMARK_FILE.fullmatch(part) or _BENCHMARK_NAME.search(part):
            return BENCHMARK
        if _SICK_NAME.search(part):
            return SICK
        if year := _year_in(part):
            return f"STS{year}"
    raise InputError(
        f"{path}: neither the file nor its folder names a test set ({', '.join(SUBSETS)}). Rename the folder"
    )


def _lines(path: str) -> list[str]:
    with open_bytes(path) as stream:
        try:
            text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 (byte {error.start})") from error
    # str.splitlines would also split at characters that a sentence may contain.
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _semeval_pairs(path: str) -> Iterator[Record]:
    """Yield the pairs of ``STS.input.NAME.txt`` with the grades of ``STS.gs.NAME.txt``, line by line."""
    file = Path(path)
    graded = str(file.with_name(re.sub(r"\.input\.", ".gs.", file.name, count=1, flags=re.IGNORECASE)))
    if not Path(graded).is_file():
        raise InputError(f"{path}: its grades are missing ({graded})")
    sentences, grades = _lines(path), _lines(graded)
    # A pair that SemEval did not have graded has a blank line.
    if len(grades) != len(sentences):
        raise InputError(f"{path} has {len(sentences)} pairs, but {graded} has {len(grades)} lines")
    for number, (line, grade) in enumerate(zip(sentences, grades, strict=True), 1):
        # STS 2016 has the sentences' sources in further columns.
        first, tab, rest = line.partition("\t")
        second = rest.split("\t")[0]
        yield _pair(number, first, second, grade) if tab else _unreadable(number, "has no tab between sentences", line)


def _benchmark_pairs(path: str) -> Iterator[Record]:
    for number, line in enumerate(_lines(path), 1):
        cells = line.split("\t")
        if len(cells) <= _SECOND:
            yield _unreadable(number, f"has {len(cells)} columns, but at least {_SECOND + 1} are needed", line)
        else:
            yield _pair(number, cells[_FIRST], cells[_SECOND], cells[_GRADE])


def _table(path: str) -> Iterator[Record]:
    """Yield the rows of a tab-separated file with a header and without quotation marks."""
    reader = csv.reader(io.StringIO("\n".join(_lines(path))), delimiter="\t", quoting=csv.QUOTE_NONE)
    header = next(reader, [])
    for index, cells in enumerate(reader):
        if cells:
            position = f"line {reader.line_num}"
            yield Record(index, position, dict(zip(header, cells, strict=False)))


def _pairs_with_names(records: Iterator[Record], path: str) -> Iterator[Record]:
    """Yield pairs from rows with named columns; of SICK's file of all parts, only the test set."""
    names: Sequence[str] | None = None
    for record in records:
        fields = record.fields
        if fields is None:
            yield record
            continue
        if names is None:
            names = _columns_in(fields, path)
        if str(fields.get("SemEval_set", _TEST)).strip().upper() != _TEST:
            continue
        first, second, grade = (fields.get(name) for name in names)
        if not isinstance(first, str) or not isinstance(second, str):
            yield Record(0, record.position, None, "lacks a sentence", json.dumps(dict(fields), default=str))
        else:
            yield _at(record.position, first, second, grade)


def _columns_in(fields: Mapping[str, Any], path: str) -> list[str]:
    found = [next((name for name in names if name in fields), None) for names in _PAIR]
    if None in found:
        needed = ", ".join(" or ".join(names) for names in _PAIR)
        raise InputError(f"{path} has the columns {', '.join(fields)}, but {needed} are needed")
    return [name for name in found if name is not None]


def _pair(number: int, first: str, second: str, grade: str) -> Record:
    return _at(f"line {number}", first, second, grade)


def _at(position: str, first: str, second: str, grade: Any) -> Record:
    text = str(grade).strip() if grade is not None else ""
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not math.isfinite(value):
        return Record(0, position, None, f"has the grade {text[:20]!r}, which is not a number", f"{first}\t{second}")
    return Record(0, position, {"first": first, "second": second, "grade": value})


def _unreadable(number: int, problem: str, line: str) -> Record:
    return Record(0, f"line {number}", None, problem, line)


def missing_files(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence for each test set that is missing or lacks subsets.

    `found` has the subsets that were read, by test set; "" stands for a file of the whole set.
    """
    sentences = []
    for task, subsets in SUBSETS.items():
        if task not in found:
            sentences.append(f"{task} is missing ({_usual_file(task)})")
        elif "" not in found[task] and (absent := [name for name in subsets if name not in found[task]]):
            files = ", ".join(f"STS.input.{name}.txt" for name in absent)
            sentences.append(f"{task} is incomplete: {files} and the grades are missing")
    return sentences


def _usual_file(task: str) -> str:
    usual: Mapping[str, str] = {BENCHMARK: "sts-test.csv", SICK: "SICK_test_annotated.txt"}
    return usual.get(task, f"{task}-en-test/STS.input.*.txt and STS.gs.*.txt")


FILES: Final = OfficialFiles(NAME, sts_records, (), _PATTERNS)
