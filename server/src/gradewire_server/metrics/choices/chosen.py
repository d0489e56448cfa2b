"""The options that an answer chooses."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from gradewire_proto import final_answer
from gradewire_proto.final_answer.thinking import after_thinking
from gradewire_proto.final_answer.types import STRIKES
from gradewire_server.metrics.choices.forces import CONCLUDED, NAMED, STATED
from gradewire_server.metrics.choices.forms import LETTER, Mention, Texts, Token, cleaned, pattern, texts_of, tokens_of
from gradewire_server.metrics.choices.letters import letters_of
from gradewire_server.metrics.choices.options import Options
from gradewire_server.metrics.choices.statements import Statement, statements_of
from gradewire_server.metrics.values.matching import ValueMatcher

if TYPE_CHECKING:
    from gradewire_proto.final_answer.marks import Statement as Mark

MAX_ANSWER: Final = 200_000
"""Characters at the end of an answer in which marks such as boxes are looked for."""
_HEAD: Final = 2_000
_TAIL: Final = 6_000
_MOST_CUES: Final = 8
_MARKED: Final = ("boxed", "fbox", "<", "[[", "{", "=", "finish", "submit", "Finish", "FINAL", "answer(", "ANSWER]")
_DIGIT: Final = re.compile(r"\d")
_JOINED_LETTERS: Final = re.compile(rf"(?<![{LETTER}\d])[A-Z]{{2,26}}(?![{LETTER}\d])")
_LABELLED: Final = re.compile(r"\W{0,4}(?:[A-Za-z]|\d{1,2})\s?[).:、）：．\]-](?!\d)")
_SHORT: Final = 8
_MOST_COMPARED: Final = 600


class Choice(NamedTuple):
    """The options that an answer chooses.

    Attributes:
        options: The options' positions in ascending order.
        by: "letter", "text", "both" or "elimination"; "" if no option is chosen.
        reason: "" if the choice is clear; otherwise "none", "several" or "conflict".
    """

    options: tuple[int, ...]
    by: str = ""
    reason: Literal["", "none", "several", "conflict"] = ""


_NONE: Final = Choice((), "", "none")


@dataclass(frozen=True, slots=True)
class _Reader:
    """An answer's reader for one question."""

    options: Options
    texts: Texts
    several: bool
    negative: bool

    def marked(self, answer: str) -> Choice:
        """Return the choice in a marked final answer, or in the whole text."""
        mark = _last_mark(answer)
        if mark is not None:
            content = mark.value or answer[mark.left : mark.right]
            choice = self.read(content)
            if choice.reason != "none" or choice.options:
                tail = answer[mark.right :]
                later = self.read(tail) if pattern("answer", "retract").search(tail) else _NONE
                return later if later.options else choice
        return self.read(answer)

    def read(self, answer: str) -> Choice:
        """Return the choice in a text."""
        text = cleaned(answer)
        if len(text) > _HEAD + _TAIL:
            text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
        tokens = tokens_of(text)
        mentions = self._mentions(text, tokens)
        if self.several and (joined := self._joined_letters(text) or _only_listed(text, mentions)) is not None:
            return joined
        if not mentions:
            return self._without_mention(text)
        statements = statements_of(text, mentions, negative=self.negative)
        for place, strong in self._retractions(text, mentions):
            later = [each for each in statements if each.start >= place]
            if later and (strong or any(each.force >= STATED for each in later)):
                choice = self._decided(text, later)
                if choice.options and choice.by != "elimination":
                    return choice
        return self._decided(text, statements)

    def _mentions(self, text: str, tokens: Sequence[Token]) -> list[Mention]:
        said = self.texts.mentions(text, tokens)
        letters = list(letters_of(text, self.options))
        said += self._classes(text, said)
        kept = [each for each in said if not any(_yields(text, each, letter) for letter in letters)]
        kept += [each for each in letters if not any(one.start < each.end and each.start < one.end for one in kept)]
        return sorted(kept, key=lambda each: (each.start, each.end))

    def _classes(self, text: str, said: Sequence[Mention]) -> list[Mention]:
        """Return mentions of options such as "none of the above" and "yes" in other words."""
        found: list[Mention] = []
        named = {each.option for each in said}
        for kind in ("none", "all", "unknown", "yes", "no"):
            members = [
                place
                for place, option in enumerate(self.options.texts)
                if len(option) < 60 and (_begins if kind in {"yes", "no"} else _is_of)(kind, cleaned(option))
            ]
            if len(members) != 1 or members[0] in named:
                continue
            for match in pattern("answer", kind).finditer(text):
                if kind in {"yes", "no"} and text[: match.start()].strip(" \n\"'("):
                    break
                if not any(each.start < match.end() and match.start() < each.end for each in said):
                    found.append(Mention(*match.span(), members[0], "text", 2))
                    break
        return found

    def _joined_letters(self, text: str) -> Choice | None:
        """Return the choice of letters without blanks between them: "AC"."""
        found = list(_JOINED_LETTERS.finditer(text))
        for match in reversed(found):
            places = [ord(letter) - ord("A") for letter in match[0]]
            alone = len(text.strip()) <= len(match[0]) + _SHORT or pattern("answer", "choose").search(
                text, max(0, match.start() - 30), match.start()
            )
            if alone and places == sorted(set(places)) and places[-1] < len(self.options.texts):
                return Choice(tuple(places), "letter")
        return None

    def _without_mention(self, text: str) -> Choice:
        """Return the option that shares an answer's value or distinctive words, or no choice."""
        text = text[:_MOST_COMPARED]
        if not self.options.are_known or not all(self.options.texts):
            return _NONE
        if all(_DIGIT.search(option) for option in self.options.texts):
            matcher = ValueMatcher("", text)
            matches = [matcher.match(option) for option in self.options.texts]
            equal = [place for place, each in enumerate(matches) if each.wanted and each.found == each.wanted]
            if len(equal) == 1:
                return Choice((equal[0],), "text")
            return _NONE
        last = text.rstrip(" \n.!?。！？").replace("。", ". ").rsplit(". ", 1)[-1]
        likeliest = [self.texts.likeliest(said) for said in dict.fromkeys((last, text))]
        option = next((each for each in likeliest if each is not None), None)
        return _NONE if option is None else Choice((option,), "text")

    def _retractions(self, text: str, mentions: Sequence[Mention]) -> list[tuple[int, bool]]:
        """Return the places behind words that take back what was said, the last first, and True for clear ones."""
        found = []
        for kind in ("retract", "doubt"):
            for match in list(pattern("answer", kind).finditer(text))[-4 * _MOST_CUES :]:
                before = text[max(0, match.start() - _SHORT) : match.start()].rstrip(" ")
                begins = not before or not (before[-1].isalnum() and before[-1].isascii()) or kind == "retract"
                if begins and not any(each.start < match.end() and match.start() < each.end for each in mentions):
                    found.append((match.end(), kind == "retract"))
        return sorted(found, reverse=True)[:_MOST_CUES]

    def _decided(self, text: str, statements: Sequence[Statement]) -> Choice:
        """Return the choice of the last statement that claims one; otherwise of what is named or left."""
        stated = [each for each in statements if not each.asked] or list(statements)
        claims = [each for each in stated if each.force >= CONCLUDED and not _taken_back(each, stated)]
        if not claims:
            claims = [each for each in stated if each.force == STATED and not _taken_back(each, stated)]
        if claims:
            return self._claimed(claims, stated)
        named = [each for each in stated if each.force == NAMED and not _taken_back(each, stated)]
        if self.negative and not self.several and (left := self._left_by(named)) is not None:
            return left
        if named:
            return self._named(text, named)
        rejected = {option for each in statements if each.force < 0 for option in each.options}
        return self._remaining(rejected)

    def _claimed(self, claims: Sequence[Statement], stated: Sequence[Statement]) -> Choice:
        last = claims[-1]
        if last.conflict:
            return Choice((), last.by, "conflict")
        if not self.several:
            return self._single(last.options, last.by)
        if len(last.options) == 1 and len(claims) > 1:
            rejected = {option for each in stated if each.force < 0 for option in each.options}
            options = {option for each in claims for option in each.options} - rejected
            return Choice(tuple(sorted(options)), last.by)
        return self._single(last.options, last.by)

    def _single(self, options: tuple[int, ...], by: str) -> Choice:
        """Return the choice of some options, which is clear if there is one, or if the question asks for several."""
        if self.several:
            every = self._member_of("all")
            if options == (every,) and every is not None:
                options = tuple(range(len(self.options.texts)))
            return Choice(tuple(sorted(set(options))), by)
        if len(options) == 1:
            return Choice(options, by)
        every = self._member_of("all")
        if every is not None and set(options) | {every} >= set(range(len(self.options.texts))):
            return Choice((every,), by)
        return Choice(tuple(sorted(options)), by, "several")

    def _member_of(self, kind: str) -> int | None:
        members = [place for place, option in enumerate(self.options.texts) if _is_of(kind, cleaned(option)[:60])]
        return members[0] if len(members) == 1 else None

    def _named(self, text: str, named: Sequence[Statement]) -> Choice:
        """Return the choice of options that are only named: the one, or that of the sentence that answers."""
        options = {option for each in named for option in each.options}
        if len(options) == 1 or self.several:
            kinds = {each.by for each in named}
            conflict = any(each.conflict for each in named)
            by = next(iter(kinds)) if len(kinds) == 1 else "both"
            return Choice((), by, "conflict") if conflict else Choice(tuple(sorted(options)), by)
        best = max(named, key=lambda each: (self._overlap(text, each), each.start))
        beside = [each for each in named if each.sentence == best.sentence and each is not best]
        together = {option for each in (best, *beside) for option in each.options}
        if best.conflict:
            return Choice((), best.by, "conflict")
        none = self._member_of("none")
        if none is not None and options | {none} == set(range(len(self.options.texts))):
            return Choice((none,), "elimination")
        if len(together) > 1 and len(best.options) == 1:
            return Choice(tuple(sorted(together)), best.by, "several")
        return self._single(best.options, best.by)

    def _overlap(self, text: str, statement: Statement) -> int:
        """Return how many of the question's words stand near a statement."""
        asked = {token.exact for token in tokens_of(self.options.stem[-_MOST_COMPARED:]) if len(token.exact) > 3}
        near = tokens_of(
            text[max(statement.span.start, statement.start - 80) : min(statement.span.end, statement.end + 80)]
        )
        return len({token.exact for token in near} & asked)

    def _left_by(self, named: Sequence[Statement]) -> Choice | None:
        """Return the option that is left where a question asks for the exception and all others are named."""
        options = {option for each in named for option in each.options}
        if len(options) < 2 or len(options) != len(self.options.texts) - 1:
            return None
        return self._remaining(options)

    def _remaining(self, rejected: set[int]) -> Choice:
        left = set(range(len(self.options.texts))) - rejected
        if not self.options.are_known or not rejected or len(left) != 1:
            return _NONE
        return Choice((left.pop(),), "elimination")


def find_choice(answer: str, options: Options, *, several: bool = False) -> Choice:
    """Return the options that an answer chooses.

    The last claim counts, and a marked final answer before all others. Options that the answer rejects or only
    discusses do not count. If an answer rejects all options but one, it chooses that option.

    Args:
        answer: Any text; marks are looked for in its last 200 000 characters, all else in 8 000.
        options: The question's options.
        several: True if the answer may choose several options.
    """
    spoken = after_thinking(answer[-MAX_ANSWER:])
    if spoken is None or not spoken.strip():
        return _NONE
    if any(mark in spoken for mark in STRIKES):
        spoken = final_answer.without_struck_text(spoken)  # imported now: it is slow to import
    negative = pattern("question", "negative").search(options.stem) is not None
    texts = texts_of(options.texts)
    reader = _Reader(options, texts, several, negative)
    whole = texts.equal(cleaned(spoken))
    label = _is_label(spoken, options) or _is_label(cleaned(spoken), options)
    if len(whole) == 1 and not label and not _LABELLED.match(spoken):
        return Choice((whole[0],), "text")
    return reader.marked(spoken)


def _is_label(answer: str, options: Options) -> bool:
    bare = answer.strip(" \n.()[]*`")
    return bare.upper() in options.labels and (not bare.isdigit() or not any(bare == text for text in options.texts))


def _last_mark(answer: str) -> "Mark | None":
    if not any(mark in answer for mark in _MARKED):
        return None
    from gradewire_proto.final_answer import marks  # noqa: PLC0415 - slow to import

    searches = (marks.last_box, marks.last_tag, marks.last_key, marks.last_call)
    found = [mark for search in searches if (mark := search(answer)) is not None]
    return max(found, key=lambda each: (each.force, each.start), default=None)


_LIST_MARKS: Final = r"[\s,;.:，、；。&+/()\[\]{}\"'•*-]*"
_BETWEEN: Final = re.compile(
    rf"{_LIST_MARKS}(?:(?:and|und|et|y|e|和|与|以及|及|options?|the answers are|答案|选)?{_LIST_MARKS})?", re.IGNORECASE
)


def _only_listed(text: str, mentions: Sequence[Mention]) -> Choice | None:
    """Return the choice of an answer that only lists options, in a line or on lines of their own."""
    start = 0
    for mention in mentions:
        if mention.start >= start and _BETWEEN.fullmatch(text, start, mention.start) is None:
            return None
        start = max(start, mention.end)
    if not mentions or _BETWEEN.fullmatch(text, start) is None:
        return None
    kinds = {mention.kind for mention in mentions}
    options = tuple(sorted({mention.option for mention in mentions}))
    letters = {mention.option for mention in mentions if mention.kind == "letter"}
    if len(kinds) > 1 and letters != set(options):
        return None
    return Choice(options, next(iter(kinds)) if len(kinds) == 1 else "both")


def _yields(text: str, mention: Mention, letter: Mention) -> bool:
    """Return True if a letter stands where an option's text was found, and the letter is meant."""
    if not (letter.start < mention.end and mention.start < letter.end):
        return False
    tokens = mention.strength // 2
    inside = mention.start <= letter.start and letter.end <= mention.end
    return not inside or (tokens == 1 and (letter.strength > 2 or not text[letter.start : letter.end].isdigit()))


def _is_of(kind: str, option: str) -> bool:
    found = pattern("answer", kind).search(option)
    return found is not None and len(option) - len(found[0]) <= 24


def _begins(kind: str, option: str) -> bool:
    return pattern("answer", kind).match(option.strip()) is not None


def _taken_back(statement: Statement, stated: Sequence[Statement]) -> bool:
    """Return True if a later statement rejects the options of an earlier one."""
    return any(
        each.force < 0 and each.start > statement.start and set(statement.options) <= set(each.options)
        for each in stated
    )
