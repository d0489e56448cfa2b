"""Forces of statements about options: an answer chooses, names or rejects what it mentions.

The force is read from the words around a mention in its sentence: "I choose B", "B is wrong", "so B".
"""

import re
from dataclasses import dataclass
from typing import Final

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.choices.forms import SIGN, VOCABULARY, pattern

CHOSEN: Final = 3
"""The force of "the answer is B", and of a sentence that is only "B" or an option's text."""
CONCLUDED: Final = 2
"""The force of "so B" and "B is right"."""
STATED: Final = 1
"""The force of "it is B"."""
NAMED: Final = 0
REJECTED: Final = -1
OUT: Final = -2
"""The force of a rejection that also counts in questions that ask for the exception."""


@dataclass(frozen=True, slots=True)
class Context:
    """The words around a mention, and the mention's form.

    Attributes:
        before: The text before the mention in its sentence, from the previous mention on.
        after: The text after the mention in its sentence, up to the next mention.
        opens: True if the mention begins its sentence, apart from interjections.
        closes: True if no other mention follows in the sentence.
        marked: True if a mark sets the mention apart from the rest of the sentence: "B. Light is faster".
        previous: Force of the previous statement in the sentence, or None.
        negative: True if the question asks for the exception.
    """

    before: str
    after: str
    opens: bool
    closes: bool
    marked: bool
    previous: int | None
    negative: bool


_CLAUSE_END: Final = re.compile(
    r"[,，、](?=\D|$)|[:：](?!\d)|\s[-–—]{1,2}\s|—|[()（）\[\]]|\.{2,}|…|"
    + expression(VOCABULARY["sentence"]["clauses"]),
    re.IGNORECASE,
)
_CLOSED: Final = re.compile(r"[\s.。!！)\]\"'”’»:,;、}]*")
_FILLERS: Final = re.compile(
    rf"[\s(\[\"'“*,.:]*(?:{expression(VOCABULARY['sentence']['fillers'])}[\s,.:(\[\"'“]*)*", re.IGNORECASE
)
_ASIDE: Final = re.compile(rf"\s?[,，]\s?{expression(VOCABULARY['sentence']['asides'])}\s?[,，]?", re.IGNORECASE)
_VERDICT_MARK: Final = re.compile(r"\s?(?:[:：]|\s[-–—]{1,2}\s|—|\()\s?")
_ALL_BUT: Final = re.compile(
    r"(?:all|everything|each|every|alle|alles|jede|toutes?|tous|todas?|todos?)\s(?:[^\W\d]+\s){0,3}?"
    r"(?:but|except|außer|sauf|menos|excepto|salvo)(?:\sfor)?\s(?:option\s)?[(\[]?$|(?<!排)除了?\s?$",
    re.IGNORECASE,
)
_SO_DOES: Final = re.compile(
    r"(?:so|neither|nor)\s(?:is|are|does|do|was|can|could|must|has)\s(?:option\s)?[(\[]?$", re.IGNORECASE
)
_CHANGED_FROM: Final = re.compile(
    r"(?:chang|switch|revis|correct|änder|wechs|korrig|corrig|passe|cambi)\w*\s[^.,;\n]{0,30}?"
    r"(?:from|von|de la|de|del?|从)\s(?:option\s)?[(\[]?$",
    re.IGNORECASE,
)
_CHANGED_TO: Final = re.compile(r"\s?[)\]]?\s?(?:to|zu|auf|à|a|a la|改为|改成|到)\s?(?:option\s)?[(\[]?", re.IGNORECASE)
_AND: Final = re.compile(r"\s(?:and|und|et|y|e)\s", re.IGNORECASE)
_LEADING_WORDS: Final = 7
_MOST_BETWEEN: Final = 8
_MOST_BESIDE: Final = 3


def is_closed(text: str) -> bool:
    """Return True if a text has only punctuation that ends a statement."""
    return _CLOSED.fullmatch(text) is not None


def force_of(context: Context) -> int:
    """Return the force of a statement: CHOSEN, CONCLUDED, STATED, NAMED, REJECTED or OUT."""
    for rule in (_by_frame, _by_cue, _by_conclusion, _by_position):
        if (force := rule(context)) is not None:
            return force
    return STATED if _near(_clause(context), "it_is", _MOST_BESIDE) is not None else NAMED


def _by_frame(context: Context) -> int | None:
    """Return the force that the rest of the sentence gives: "all but B are wrong", "B is right", "from A to B"."""
    verdict = _predicate(context)
    if _ALL_BUT.search(context.before) is not None:
        return CHOSEN if context.negative or verdict is None or verdict < 0 else REJECTED
    if verdict is not None:
        return verdict
    if context.previous is not None and _SO_DOES.search(context.before) is not None:
        return context.previous
    if _CHANGED_FROM.search(context.before) is not None:
        return REJECTED
    changed = (context.previous or 0) < 0 and _CHANGED_TO.fullmatch(context.before) is not None
    return CHOSEN if changed else None


def _by_cue(context: Context) -> int | None:
    """Return the force of the last word of choosing or rejecting before a mention."""
    clause = _clause(context)
    choose = _near(clause, "choose", _MOST_BETWEEN)
    reject = last_of(clause, "reject")
    if reject is not None and (choose is None or choose[0] < reject[1] or _denies(clause, reject, choose)):
        return REJECTED
    return None if choose is None else CHOSEN


def _by_conclusion(context: Context) -> int | None:
    """Return the force of "so B", "Answer: B" and "not A, but B"."""
    clause = _clause(context)
    ended = is_closed(first_clause(context.after))
    if _FILLERS.fullmatch(clause) is not None:
        if (context.previous or 0) < 0 and pattern("answer", "instead").search(context.before) is not None:
            return CHOSEN
        head = context.before[: len(context.before) - len(_last_clause(context.before))]
        if head.rstrip().endswith((":", "：")) and last_of(_last_clause(head.rstrip(" :：")), "choose") is not None:
            return CHOSEN
        if _ends_with(head, "conclude"):
            return CONCLUDED if ended else STATED
    if ended and last_of(clause, "conclude") is not None:
        return CONCLUDED
    return STATED if context.closes and ended and context.before.rstrip().endswith(("=", "≈")) else None


def _by_position(context: Context) -> int | None:
    """Return the force of a sentence that only mentions an option, or begins with its label."""
    if not context.opens:
        return None
    if context.marked or (context.closes and is_closed(context.after)):
        return CHOSEN
    return CONCLUDED if is_closed(first_clause(context.after)) else None


def _predicate(context: Context) -> int | None:
    """Return the force of what is said of a mention after it, or None if nothing is said."""
    plain = pattern("answer", "no_denial").sub(" ", _said_after(context.after))
    right, wrong = first_of(plain, "is_right"), first_of(plain, "is_wrong")
    limited = first_of(plain, "is_wrong_and")
    if limited is not None and plain[limited[1] :].strip(" .。!") and (wrong is None or limited[0] < wrong[0]):
        wrong = limited
    if right is not None and pattern("sentence", "if").search(plain, right[1]) is not None:
        right = None
    right, wrong = (None if _words_before(plain, each) > _LEADING_WORDS else each for each in (right, wrong))
    if wrong is None or (right is not None and (right[0], -right[1]) < (wrong[0], -wrong[1])):
        return None if right is None else CONCLUDED
    if pattern("answer", "out").search(plain) is not None:
        return OUT
    return CONCLUDED if context.negative else REJECTED


def _said_after(after: str) -> str:
    """Return the clause that says something of the mention before it."""
    following = first_clause(after)
    rest = after[len(following) :]
    if following.strip(" )]\"'”*"):
        return following
    if (aside := _ASIDE.match(rest)) is not None:  # "B, however, is wrong"
        return first_clause(rest[aside.end() :])
    if (mark := _VERDICT_MARK.match(rest)) is not None:  # "B: wrong"
        part = first_clause(rest[mark.end() :])
        return part if _starts(part, "is_right") or _starts(part, "is_wrong") else ""
    return ""


def _clause(context: Context) -> str:
    return pattern("answer", "no_denial").sub(" ", _last_clause(context.before))


def _near(clause: str, kind: str, most: int) -> tuple[int, int] | None:
    """Return the last word of a kind, if at most some words and no "and" stand between it and the clause's end."""
    found = last_of(clause, kind)
    if found is None:
        return None
    between = clause[found[1] :]
    return found if len(between.split()) <= most and (most > _MOST_BESIDE or not _AND.search(between)) else None


def _denies(clause: str, reject: tuple[int, int], choose: tuple[int, int]) -> bool:
    """Return True if a negation belongs to the verb of choosing: "I would not pick A"."""
    return len(clause[reject[1] : choose[0]].split()) < 2


def _starts(part: str, kind: str) -> bool:
    found = first_of(part, kind)
    return found is not None and _words_before(part, found) < 2


def _words_before(text: str, span: tuple[int, int] | None) -> int:
    if span is None:
        return 0
    head = text[: span[0]]
    return len(head.split()) + len(re.findall(f"[{SIGN}]", head)) // 2


def first_of(text: str, kind: str) -> tuple[int, int] | None:
    """Return the span of a text's first word of a kind."""
    found = pattern("answer", kind).search(text)
    return found.span() if found else None


def last_of(text: str, kind: str) -> tuple[int, int] | None:
    """Return the span of a text's last word of a kind."""
    last = None
    for match in pattern("answer", kind).finditer(text):
        last = match.span()
    return last


def _ends_with(text: str, kind: str) -> bool:
    found = last_of(text, kind)
    return found is not None and not text[found[1] :].strip(" ,，:：")


def _last_clause(before: str) -> str:
    start = 0
    for match in _CLAUSE_END.finditer(before):
        start = match.end()
    return before[start:]


def first_clause(after: str) -> str:
    """Return a text up to the end of its first clause."""
    skipped = len(after) - len(after.lstrip(" )]\"'”’"))
    found = _CLAUSE_END.search(after, skipped)
    return after if found is None else after[: found.start()]
