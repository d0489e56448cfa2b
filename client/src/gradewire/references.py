"""The entries and results of `prepare` calls, which prepare references before answers arrive."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from gradewire._columns import AmbiguousColumnsError
from gradewire._rows import TRUTH_FIELDS, Table, UnreadableValueError, as_texts, field_values
from gradewire.items import holds_bytes
from gradewire.results import CacheHits, Provenance, Status
from gradewire_proto.v1 import references_pb2
from gradewire_proto.wire_rules import MAX_MARKS, has_long_run, name_set


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEntry:
    """The references of one question. A mapping with the same keys works too; unknown keys are ignored.

    A mapping with `answerable` False needs no preparation and is left out.

    Attributes:
        references: One or more right answers.
        synthetic_answers: Each reference rewritten as a full sentence, in the order of `references`; may be empty.
        question: The question.
    """

    references: Sequence[str]
    synthetic_answers: Sequence[str] = ()
    question: str = ""


ReferenceEntryLike = ReferenceEntry | Mapping[str, Any]
EntriesLike = Iterable[ReferenceEntryLike] | Table
"""Entries, or a pandas, polars or Arrow table with one entry per row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticGeneration:
    """The judge that writes synthetic answers, and the judge's prompt.

    Attributes:
        judge: NAME or NAME@DIGEST; "" means the server's default judge.
        prompt: NAME/VERSION[@DIGEST] of a prompt that the server knows, or the whole text of a prompt file for the
            metric "synthetic"; "" means the default prompt.
    """

    judge: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """The progress of a `prepare` call.

    Attributes:
        entries_done: Number of entries that are prepared or have failed.
        entries_total: Number of entries in the call.
        cache_hits: Number of texts so far, by the source of their results.
        synthetic_answers_stored: Number of synthetic answers in the set so far, including answers stored earlier.
        synthetic_answers_generated: Number of synthetic answers that a judge wrote in this call.
        synthetic_answers_fallback: Number of references that serve as their own synthetic answers, because the judge
            wrote no acceptable sentence.
    """

    entries_done: int
    entries_total: int
    cache_hits: CacheHits
    synthetic_answers_stored: int
    synthetic_answers_generated: int = 0
    synthetic_answers_fallback: int = 0


@dataclass(frozen=True, slots=True)
class EntryFailure:
    """The reason why an entry was not prepared, or was prepared only in part."""

    index: int
    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class PrepareReport:
    """The result of a `prepare` call.

    Attributes:
        reference_set: The set's name, for `score(…, synthetic="prepared", reference_set=…)`. The name is a digest (32
            hex digits) of all entries in order.
        entries: Number of entries, including questions without an answer.
        failures: Entries that could not be prepared.
        cache_hits: Number of texts by the source of their results. A second call with equal entries computes nothing.
        synthetic_answers_stored: Number of synthetic answers in the set, including answers stored earlier.
        provenance: Provenance of scores that use this set, by metric label.
        synthetic_answers_generated: Number of synthetic answers that a judge wrote in this call.
        fallbacks: Prepared entries in which a reference serves as its own synthetic answer, because the judge wrote no
            acceptable sentence (UNPARSABLE).
        synthetic_answers: With `generate`, synthetic answers by entry index, without rejected entries. Each entry has
            one answer per reference; a missing answer is None.
        generation: With `generate`, the judge and its prompt.
        corpus_digest: With `immutable`, a digest (32 hex digits) of the set's entries, which never change.
    """

    reference_set: str
    entries: int
    failures: tuple[EntryFailure, ...]
    cache_hits: CacheHits
    synthetic_answers_stored: int
    provenance: Mapping[str, Provenance]
    synthetic_answers_generated: int = 0
    fallbacks: tuple[EntryFailure, ...] = ()
    synthetic_answers: Mapping[int, tuple[str | None, ...]] = field(default_factory=dict)
    generation: Provenance | None = None
    corpus_digest: str = ""

    @property
    def pinned(self) -> str:
        """The set's name for `reference_set=`; with `immutable`, NAME@DIGEST, which requires exactly these entries."""
        return f"{self.reference_set}@{self.corpus_digest}" if self.corpus_digest else self.reference_set


def encode_entry(index: int, entry: object) -> references_pb2.ReferenceEntry | EntryFailure | None:
    """Return an entry's message, or the reason why the entry cannot be sent.

    Return None for a question without an answer, which has nothing to prepare.
    """
    if isinstance(entry, ReferenceEntry):
        entry = {field.name: getattr(entry, field.name) for field in fields(ReferenceEntry)}
    elif not isinstance(entry, Mapping):
        return _invalid(index, f" is a {type(entry).__name__}: give a mapping or a gradewire.ReferenceEntry")
    try:
        values = as_texts(field_values(entry, (*ReferenceEntry.__slots__, *TRUTH_FIELDS)))
    except (UnreadableValueError, AmbiguousColumnsError) as error:
        unclear = isinstance(error, AmbiguousColumnsError)
        return _invalid(index, f": {error}: rename the right key to references" if unclear else f".{error}")
    if values.pop("answerable", True) is False:
        return None
    if "references" not in values:
        return _invalid(index, ".references is missing: give a list of strings")
    try:
        message = references_pb2.ReferenceEntry(**values)
    except (TypeError, ValueError) as error:
        return _invalid(
            index, f" has a value that is not text ({type(error).__name__}): give strings, decoded as UTF-8"
        )
    problem = _text_problem(values, message)
    return _invalid(index, problem) if problem else message


def _text_problem(values: Mapping[str, Any], message: references_pb2.ReferenceEntry) -> str:
    # protobuf accepts bytes that happen to be UTF-8, so the same kind of data could pass or fail by chance.
    if holds_bytes(values):
        return " has bytes instead of text: give strings"
    for text in (message.question, *message.references, *message.synthetic_answers):
        if has_long_run(text):
            return f" has a string with more than {MAX_MARKS} combining marks in a row: remove some marks"
    return ""


def name_entries(entries: Sequence[ReferenceEntryLike]) -> str:
    """Return the name of `prepare`'s set for these entries. Ignore entries that `prepare` rejects."""
    messages = (encode_entry(index, entry) for index, entry in enumerate(entries))
    return name_set(message for message in messages if isinstance(message, references_pb2.ReferenceEntry))


def _invalid(index: int, problem: str) -> EntryFailure:
    return EntryFailure(index, Status.INVALID_INPUT, f"entries[{index}]{problem}")
