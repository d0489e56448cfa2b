"""Entries and results of `prepare`, which prepares references before answers arrive."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from gradewire._rows import Table, UnreadableValueError, as_texts, field_values
from gradewire.items import holds_bytes
from gradewire.results import CacheHits, Provenance, Status
from gradewire_proto.v1 import references_pb2
from gradewire_proto.wire_rules import MAX_MARKS, has_long_run, name_set


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEntry:
    """The references of one question. A mapping with the same keys works too; other keys are ignored.

    Attributes:
        references: One or more right answers.
        synthetic_answers: Each reference as a full sentence, in the order of `references`; or empty.
        question: The question.
    """

    references: Sequence[str]
    synthetic_answers: Sequence[str] = ()
    question: str = ""


ReferenceEntryLike = ReferenceEntry | Mapping[str, Any]
EntriesLike = Iterable[ReferenceEntryLike] | Table
"""Entries, or a table of pandas, polars or Arrow with a row for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticGeneration:
    """A judge and a prompt to write synthetic answers.

    Attributes:
        judge: NAME or NAME@DIGEST; "" for the server's default.
        prompt: NAME/VERSION[@DIGEST] of a prompt that the server knows, or the whole text of a prompt file of the
            metric "synthetic"; "" for the default.
    """

    judge: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """The progress of a `prepare` call.

    Attributes:
        entries_done: Entries prepared or failed.
        entries_total: Entries of the call.
        cache_hits: Texts so far, by source.
        synthetic_answers_stored: Synthetic answers in the set so far, including those from before this call.
        synthetic_answers_generated: Synthetic answers that a judge wrote in this call.
        synthetic_answers_fallback: References that stand for themselves, because the judge found no good sentence.
    """

    entries_done: int
    entries_total: int
    cache_hits: CacheHits
    synthetic_answers_stored: int
    synthetic_answers_generated: int = 0
    synthetic_answers_fallback: int = 0


@dataclass(frozen=True, slots=True)
class EntryFailure:
    """The reason why an entry is not, or not completely, prepared."""

    index: int
    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class PrepareReport:
    """The result of a `prepare` call.

    Attributes:
        reference_set: Name of the set, for `score(…, synthetic="prepared", reference_set=…)`: 32 hex digits over all
            entries in order. Another order makes another set.
        entries: Number of entries.
        failures: Entries that could not be prepared.
        cache_hits: Texts by source; a second call computes none.
        synthetic_answers_stored: Synthetic answers in the set, including those from before this call.
        provenance: Provenance of scores with this set, by metric label.
        synthetic_answers_generated: Synthetic answers that a judge wrote in this call.
        fallbacks: Prepared entries with references that stand for themselves, because the judge found no good sentence
            (UNPARSABLE).
        synthetic_answers: With `generate`: answers by index of the entry, one for each reference, None if missing;
            without refused entries.
        generation: With `generate`: the judge and its prompt.
        corpus_digest: With `immutable`: 32 hex digits over the set's entries, which never change.
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
        """Name of the set for `reference_set=`; with `immutable` NAME@DIGEST, which requires exactly that content."""
        return f"{self.reference_set}@{self.corpus_digest}" if self.corpus_digest else self.reference_set


def encode_entry(index: int, entry: object) -> references_pb2.ReferenceEntry | EntryFailure:
    """Return the message of an entry, or its problem."""
    if isinstance(entry, ReferenceEntry):
        entry = {field.name: getattr(entry, field.name) for field in fields(ReferenceEntry)}
    elif not isinstance(entry, Mapping):
        return _invalid(index, f" is a {type(entry).__name__}: give a mapping or a gradewire.ReferenceEntry")
    try:
        values = as_texts(field_values(entry, ReferenceEntry.__slots__))
    except UnreadableValueError as error:
        return _invalid(index, f".{error}")
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
    # protobuf accepts bytes that happen to be UTF-8, so the same data could pass or fail by chance.
    if holds_bytes(values):
        return " has bytes instead of a text: give strings"
    for text in (message.question, *message.references, *message.synthetic_answers):
        if has_long_run(text):
            return f" has a text with more than {MAX_MARKS} combining marks in a row: shorten it"
    return ""


def name_entries(entries: Sequence[ReferenceEntryLike]) -> str:
    """Return the name of the set that `prepare` makes from these entries, without those that it would refuse."""
    messages = (encode_entry(index, entry) for index, entry in enumerate(entries))
    return name_set(message for message in messages if not isinstance(message, EntryFailure))


def _invalid(index: int, problem: str) -> EntryFailure:
    return EntryFailure(index, Status.INVALID_INPUT, f"entries[{index}]{problem}")
