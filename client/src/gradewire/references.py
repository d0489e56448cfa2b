"""References made ready before answers come: what goes in, what comes back."""

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
    """The references of one question. A mapping with the same keys does as well; further keys are not looked at.

    Attributes:
        references: One or more right answers.
        synthetic_answers: Each reference written out as a sentence, in the order of `references`; or empty.
        question: What was asked.
    """

    references: Sequence[str]
    synthetic_answers: Sequence[str] = ()
    question: str = ""


ReferenceEntryLike = ReferenceEntry | Mapping[str, Any]
EntriesLike = Iterable[ReferenceEntryLike] | Table
"""Entries, or a table with a row for each: of pandas, polars or Arrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticGeneration:
    """The writer of synthetic answers.

    Attributes:
        judge: NAME or NAME@DIGEST; "" for the server's default.
        prompt: NAME/VERSION[@DIGEST] of a prompt that the server knows, or the whole text of a prompt file of the
            metric "synthetic"; "" for the default one.
    """

    judge: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """The progress of a call of `prepare`.

    Attributes:
        entries_done: Entries that are prepared or failed.
        entries_total: Entries of the call.
        cache_hits: Texts so far, by where they were found.
        synthetic_answers_stored: Synthetic answers in the set so far, those that were there before included.
        synthetic_answers_generated: Those of them that a judge wrote in this call.
        synthetic_answers_fallback: Those of them that are the reference itself, for want of a good sentence.
    """

    entries_done: int
    entries_total: int
    cache_hits: CacheHits
    synthetic_answers_stored: int
    synthetic_answers_generated: int = 0
    synthetic_answers_fallback: int = 0


@dataclass(frozen=True, slots=True)
class EntryFailure:
    """The reason why an entry is not prepared, or not wholly."""

    index: int
    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class PrepareReport:
    """The result of a call of `prepare`.

    Attributes:
        reference_set: Name of the set, for `score(…, synthetic="prepared", reference_set=…)`: 32 hex digits over the
            content of all entries in their order. The same entries in another order are another set.
        entries: Number of entries.
        failures: Entries that could not be prepared; the others are.
        cache_hits: Texts, by where they were found; a second call finds all and computes none.
        synthetic_answers_stored: Synthetic answers in the set, those that were there before included.
        provenance: What a score of this set would be computed with, by label of the metric.
        synthetic_answers_generated: Those of them that a judge wrote in this call.
        fallbacks: Entries that are prepared, but the judge found no good sentence for some of their references, which
            stand for themselves (UNPARSABLE).
        synthetic_answers: With `generate`: by index of the entry one for each of its references, None where there is
            none; entries that were refused are not in it.
        generation: With `generate`: the judge and the prompt that it was given.
        corpus_digest: With `immutable`: 32 hex digits over the entries of the set, which has no others and gets none.
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
        """Name of the set for `reference_set=`; with `immutable` NAME@DIGEST, which insists on that content."""
        return f"{self.reference_set}@{self.corpus_digest}" if self.corpus_digest else self.reference_set


def encode_entry(index: int, entry: object) -> references_pb2.ReferenceEntry | EntryFailure:
    """Make the message of an entry, or says what is wrong with it."""
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
            index, f" holds something that is no text ({type(error).__name__}): give strings, decoded as UTF-8"
        )
    problem = _text_problem(values, message)
    return _invalid(index, problem) if problem else message


def _text_problem(values: Mapping[str, Any], message: references_pb2.ReferenceEntry) -> str:
    # protobuf takes bytes that happen to be UTF-8 for text: then the same data would pass or fail by chance.
    if holds_bytes(values):
        return " holds bytes in the place of a text: give strings"
    for text in (message.question, *message.references, *message.synthetic_answers):
        if has_long_run(text):
            return f" holds a text with more than {MAX_MARKS} combining marks in a row: shorten it"
    return ""


def name_entries(entries: Sequence[ReferenceEntryLike]) -> str:
    """Return the name that `prepare` gives to the set of these entries, without those that it would refuse."""
    messages = (encode_entry(index, entry) for index, entry in enumerate(entries))
    return name_set(message for message in messages if not isinstance(message, EntryFailure))


def _invalid(index: int, problem: str) -> EntryFailure:
    return EntryFailure(index, Status.INVALID_INPUT, f"entries[{index}]{problem}")
