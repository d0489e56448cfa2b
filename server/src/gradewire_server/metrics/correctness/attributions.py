"""Tell whether a mention of a reference is about another thing, or another's opinion: "Tom's wife", "She says Tom"."""

import re
from typing import Final

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, VOCABULARY, folded, number_or_lemma
from gradewire_server.metrics.text.normalise import verb_lemmas

_LISTS: Final = VOCABULARY["attributions"]


def _any(name: str) -> str:
    listed = _LISTS[name]
    return expression(tuple(listed.split("|") if "|" in listed else listed.split()))


_DETERMINERS: Final = rf"(?:(?:{_any('determiners')})\s+)"
_OWNED: Final = re.compile(r"['\u2019](?:s\b)?\s+([^\W_]+)")
_WORD: Final = re.compile(r"[^\W_]+")
_IS: Final = FUNCTION_WORDS.union(_LISTS["behind_is"].split())
"""Words that follow "is" rather than a genitive: "Tom's the winner"."""
_NAMESAKE: Final = re.compile(rf",?\s+(?P<other>{_any('namesakes')})\b")
_BEFORE_OF: Final = re.compile(
    rf"(?P<claim>(?:^|[,:;.\n]|\b(?:{_any('copulas')}))\s*)?(?:{_DETERMINERS})?(?:(?P<modifier>[^\W\d_]+)\s+)??"
    rf"(?P<noun>[^\W\d_]+)\s+(?P<of>of|von|de|du|des|del|d')\s*(?P<article>{_DETERMINERS})?$"
)
_OF: Final = frozenset({"of", "von", "de", "du", "des", "del"})
_RELATIVES: Final = frozenset(_LISTS["relatives"].split())
_CONVERSES: Final = tuple(frozenset(group.split()) for group in _LISTS["converses"])
"""Words of one relation from both sides: who taught somebody has him as a pupil."""
_DEED: Final = re.compile(r"(?:tion|sion|ment|ery|ance|ence|ness|ism|ing|ed|ity|age|ship|hood)$")
"""Endings of what somebody does or is: "Bell's invention"."""
_HARMLESS: Final = frozenset(_LISTS["harmless"].split())
_NOT_READ: Final = re.compile(r" (?:whose|where|relation|related) ")
"""Questions that ask for a relation or a place: the coast of Chile is in Chile."""
_COMPARES: Final = re.compile(r" (?:[^\W\d_]{2,}(?:er|est)|more|less|most|least) ")
_SAYS: Final = rf"(?:{_any('says')}|(?:{_any('calls')})\s+(?:him|her|it|them|this|that))"
# Greedy, so that the last verb counts: "The accused says".
_SAID_BEFORE: Final = re.compile(
    rf".*\b(?P<speaker>(?!(?:{_any('helps')})\b)[^\W\d_]{{2,}})\s+(?:[^\W\d_]+ly\s+)?(?:(?:{_any('helps')})\s+)?"
    rf"(?P<verb>{_SAYS})\b(?P<rest>[^.!?;]{{0,40}})$",
    re.DOTALL,
)
_ACCORDING: Final = re.compile(rf"\b(?:{_any('according')})\s+{_DETERMINERS}(?P<source>[^.!?;]{{1,50}})$")
_SAID_BEHIND: Final = re.compile(
    rf"[\"'\u201d]?,?[\"'\u201d]?\s*(?:(?P<verb>{_any('says')})|according\s+to)\s+{_DETERMINERS}(?P<speaker>[^\W\d_]+)"
    rf"|[\"'\u201d]?,[\"'\u201d]?\s*{_DETERMINERS}(?P<subject>[^\W\d_]+)\s+(?P<spoken>{_any('says')})\b"
)
_SPEAKS: Final = re.compile(rf"\b(?:{_any('says')}|{_any('calls')}|{_any('according')})\b")
_TURNS: Final = re.compile(r"\b(?:but|yet|however|although|though|while|whereas)\b")
_NO_SPEAKERS: Final = frozenset(_LISTS["no_speakers"].split())
_SOURCES: Final = frozenset(_LISTS["sources"].split())
_IN_SPEECH: Final = re.compile(rf"\b(?:{_any('speeches')})\b")
_NAMES: Final = re.compile(r"\b(?:nick|sur)?names?\b")
_PLACED: Final = re.compile(r"\b(?:in|from|on|at)\s+(?:[^\W\d_]+\s+)?$")


def asks_to_compare(own: str) -> bool:
    """Return True for a question such as "Which is larger, Venus or Mars?"; "than" is in place in its answers."""
    return " or " in own and _COMPARES.search(own) is not None


def is_of_another(before: str, mention: str, after: str, own: str) -> bool:
    """Return True if a mention only tells whose relative, part or work something is: "Obama's wife", "a son of Obama".

    Args:
        before: The text before the mention, in lower case.
        mention: The mention.
        after: The text behind it.
        own: The words of the question and its references, with blanks around each.
    """
    return (_has_namesake(after, own) or _is_owner(before, mention, after, own)) and _NOT_READ.search(own) is None


def _has_namesake(after: str, own: str) -> bool:
    found = _NAMESAKE.match(after)
    return found is not None and not _is_known(found["other"], own)


def _is_owner(before: str, mention: str, after: str, own: str) -> bool:
    owned = _OWNED.match(f"'{after}" if mention.endswith(("'s", "s'")) else after)
    if owned is not None:
        return _PLACED.search(before) is None and owned[1] not in _IS and _is_another(owned[1], own)
    if _OF.isdisjoint(before.split()[-2:]):
        return False
    found = _BEFORE_OF.search(before)
    if found is None or number_or_lemma(found["modifier"] or "").isdecimal():
        return False
    claims = found["claim"] is not None and found["article"] is not None and found["of"] == "of"
    is_thing = claims and not any(map(str.isdecimal, mention))
    return (is_thing or number_or_lemma(found["noun"]) in _RELATIVES) and _is_another(found["noun"], own)


def _is_another(noun: str, own: str) -> bool:
    """Return True for a noun of something that is not its owner, and of which the question does not speak."""
    singular = number_or_lemma(noun)
    if _is_known(noun, own) or noun in FUNCTION_WORDS:
        return False
    if singular in _RELATIVES:
        return not any(singular in group and not group.isdisjoint(own.split()) for group in _CONVERSES)
    is_deed = _DEED.search(singular) is not None or bool(verb_lemmas(noun) or verb_lemmas(singular))
    return not is_deed and not {noun, singular} & _HARMLESS


def _is_known(word: str, own: str) -> bool:
    return any(f" {each} " in own for each in (word, f"{word}s", word.removesuffix("s"), folded(word)))


def is_reported(before: str, after: str, own: str) -> bool:
    """Return True if a mention stands in what somebody says, whom the question does not ask: "the plaque says Tom"."""
    return (_is_said_before(before, own) or _is_said_behind(after, own)) and _IN_SPEECH.search(own) is None


def _is_said_before(before: str, own: str) -> bool:
    if _SPEAKS.search(before) is None:
        return False
    said = _SAID_BEFORE.match(before)
    if said is not None and not _TURNS.search(said["rest"]) and _is_speaker(said["speaker"], said["verb"], own):
        return True
    source = _ACCORDING.search(before)
    return source is not None and not _TURNS.search(source["source"]) and _is_source(source["source"], own)


def _is_said_behind(after: str, own: str) -> bool:
    found = _SAID_BEHIND.match(after)
    if found is None:
        return False
    return _is_speaker(found["speaker"] or found["subject"], found["verb"] or found["spoken"] or "", own)


def _is_speaker(speaker: str, verb: str, own: str) -> bool:
    """Return True for a speaker and a verb that neither the question nor a reference has."""
    if verb.startswith("call") and _NAMES.search(own):
        return False
    return (
        speaker not in FUNCTION_WORDS
        and speaker not in _NO_SPEAKERS
        and speaker not in _SOURCES
        and speaker.removesuffix("s") not in _SOURCES
        and not _is_known(speaker, own)
        and not any(_is_known(each, own) for each in verb.split()[:1])
    )


def _is_source(text: str, own: str) -> bool:
    """Return True if a text begins with a person or thing to whose opinion the question does not refer."""
    begin = _WORD.findall(text)[:2]
    return bool(begin) and _is_speaker(begin[0], "", own) and begin[-1] not in _SOURCES
