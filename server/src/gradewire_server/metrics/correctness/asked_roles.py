"""Find short answers that give a reference the other role than the question asks for: who taught, who was taught."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, Self

from gradewire_server.metrics.correctness.roles import SUBORDINATORS
from gradewire_server.metrics.correctness.sentences import OPPOSITES, asking, opposites
from gradewire_server.metrics.correctness.words import (
    FUNCTION_WORDS,
    MAY_NEGATE,
    VOCABULARY,
    FeatureText,
    folded,
    number_or_lemma,
)
from gradewire_server.metrics.text.normalise import antonym_table, known_words, verb_lemmas
from gradewire_server.metrics.text.words import split_words

_MOST_REFERENCES: Final = 8
_MOST_SENTENCES: Final = 12
_MOST_WORDS: Final = 60
"""Maximum number of words of an answer. Longer prose hardly ever exchanges roles, and takes longer to read."""
_MOST_QUESTION_CHARACTERS: Final = 400
_MOST_WANTED_WORDS: Final = 6
_MOST_SPOKEN: Final = 6
_MOST_CACHED: Final = 64
_LISTS: Final = VOCABULARY["asked_roles"]
_BE: Final = frozenset({"be", "is", "was", "are", "were", "been", "being", "get", "gets", "got"})
_DO: Final = frozenset({"do", "does", "did"})
_AUXILIARIES: Final = _BE.union(_DO, _LISTS["auxiliaries"].split())
_ASKS: Final = frozenset({"who", "whom", "which", "what", "that"})
_ASKS_FOR_KIND: Final = frozenset({"which", "what"})
_DETERMINERS: Final = frozenset(_LISTS["determiners"].split())
_SETTINGS: Final = frozenset(_LISTS["settings"].split())
_SYMMETRIC: Final = frozenset(_LISTS["symmetric"].split())
_NO_RELATIONS: Final = frozenset(_LISTS["no_relations"].split())
_SUBJECT_PRONOUNS: Final = frozenset({"i", "you", "we", "he", "she", "it", "they"})
_OBJECT_PRONOUNS: Final = frozenset({"me", "him", "her", "it", "us", "them"})
_RELATIVES: Final = frozenset({"that", "who", "whom", "which"})
_PREPOSITIONS: Final = frozenset(_LISTS["prepositions"].split())
_GOVERNED: Final = frozenset({"", "to", "from"})
"""Prepositions of an object: "gave it to Tom"."""
_SPLITS: Final = _PREPOSITIONS - {"of"}
_OWNER: Final = "zzowner"
_BREAK: Final = "zzbreak"
_INTERRUPTS: Final = frozenset({_BREAK, "and"})
_ENDS_CLAUSE: Final = _AUXILIARIES | SUBORDINATORS | {"after", "before"}
_BEHIND_ADJECTIVE: Final = frozenset({"of", "to", "on", "for", "from", "about"})
_JOINT: Final = frozenset({"with", "against", "next", "beside", "opposite", "near", "alongside", "close", "adjacent"})
"""Words between those who take the same part: "sang with", "sits next to"."""
_NO_VERB_BEHIND: Final = _DETERMINERS | {_OWNER, _BREAK}
_BEHIND_NOUN: Final = frozenset((word,) for word in (*_AUXILIARIES, "of"))
_NO_ADJECTIVES: Final = FUNCTION_WORDS | _SYMMETRIC | _NO_RELATIONS | _JOINT
_BEHIND_NAMED: Final = frozenset((word,) for word in _ASKS)
_MARKED: Final = re.compile(r"(?<=\w)'s\b|(?<=s)'(?=\s)")
_BREAKS: Final = re.compile(r"[,:](?!\w)|\((?!\))|(?<!\()\)|\u2014|\s[\u2013-]\s")
_SENTENCE_END: Final = re.compile(
    r"(?<!\b\w)(?<!\b\w\w)(?<!\bMrs)(?<!\bProf)\.(?=\s|$)|[!?;\n\u3002\uff01\uff1f\uff1b]"
    r"|\b(?:but|while|whereas|although|though)\b",
    re.IGNORECASE,
)
_MOST_SKIPPED: Final = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """The role of a verb that a question asks about.

    Attributes:
        for_subject: True if it asks for the subject of the active verb.
        others: The words of each of the verb's other arguments.
        preposition: The preposition of the object, "for" in "Who plays for Ajax?", or "".
    """

    for_subject: bool
    others: tuple[frozenset[str], ...]
    preposition: str = ""


def role_reversed(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if an answer gives a reference the other role in what the question asks, otherwise 0.

    Examples: "Anna taught Tom" for Tom, after "Who taught Anna?"; "Plato was the teacher of Socrates", after "Who
    was Plato's teacher?"; "Mars is larger than Venus" for Venus, after "Which is larger, Venus or Mars?". An answer
    that gives the reference the requested role in another sentence has 0.
    """
    if not 2 < len(answer.words) <= _MOST_WORDS or not question.words:
        return 0.0
    asked = asking(question)
    words = _question_words(asked.raw)
    if _ASKS.isdisjoint(words):
        return 0.0
    found: list[bool] = []
    sentences: list[_Sentence] | None = None
    for reference in references[:_MOST_REFERENCES]:
        wanted = _wanted(reference, asked.distinct, answer.distinct)
        if not wanted:
            continue
        if sentences is None:
            sentences = [
                _Sentence.of(part, words)
                for part in islice(_SENTENCE_END.split(answer.raw), _MOST_SENTENCES)
                if MAY_NEGATE.search(part) is None
            ]
        found += (exchanged for sentence in sentences for exchanged in _readings(words, sentence, wanted))
    return float(bool(found) and all(found))


def _wanted(reference: FeatureText, asked: Collection[str], said: Collection[str]) -> frozenset[str]:
    """Return the words of a short reference that an answer has, if it has the last of them, often a surname.

    Words of the question are left out unless there are no others.
    """
    content = [word for word in reference.content if word not in FUNCTION_WORDS]
    content = [word for word in content if word not in asked] or content
    if not content or len(content) > _MOST_WANTED_WORDS or content[-1] not in said or "than" in reference.distinct:
        return frozenset()
    return frozenset(word for word in content if word in said)


@lru_cache(maxsize=_MOST_CACHED)
def _question_words(text: str) -> tuple[str, ...]:
    """Return the words of a question's last sentence, not lemmatised."""
    parts = [part for part in _SENTENCE_END.split(text[:_MOST_QUESTION_CHARACTERS]) if any(map(str.isalnum, part))]
    return _words(parts[-1]) if parts else ()


def _words(text: str) -> tuple[str, ...]:
    """Return the folded words, with marks for genitives and pauses."""
    text = _BREAKS.sub(f" {_BREAK} ", text.replace("\u2019", "'"))
    return tuple(split_words(folded(_MARKED.sub(f" {_OWNER} ", text))))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of an answer.

    Attributes:
        words: The folded words.
        lemmas: Their lemmas.
        verb: The place of a verb in the question, or None if the sentence has no form of the verb.
        spoken: The places where the sentence has a form of it.
    """

    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    verb: int | None
    spoken: tuple[int, ...]

    @classmethod
    def of(cls, text: str, asked: Sequence[str]) -> Self:
        """Read a sentence of the answer to a question with the words `asked`."""
        words = _words(text)
        verbs: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            if (place == 0 or words[place - 1] not in _NO_VERB_BEHIND) and not _is_compared(words, place):
                for lemma in verb_lemmas(word):
                    verbs.setdefault(lemma, []).append(place)
        return cls(words, tuple(map(number_or_lemma, words)), *_shared_verb(asked, verbs))


def _readings(words: Sequence[str], sentence: _Sentence, wanted: frozenset[str]) -> Iterator[bool]:
    """Yield for each relation of question and sentence whether the wanted words have exchanged their role."""
    if not wanted.issubset(sentence.lemmas):
        return
    asked = None if sentence.verb is None else _asked(words, sentence.verb)
    if asked:
        clause = _Clause(sentence.words, sentence.lemmas, wanted)
        for spoken in sentence.spoken:
            found = clause.is_subject(spoken, asked)
            if found is not None:
                yield found != asked.for_subject
    if _OWNER in words or "of" in words:
        yield from _relations(words, sentence.lemmas, wanted)
    yield from _predicates(words, sentence, wanted)
    if "than" in sentence.words:
        compared = _compared(words, sentence, wanted)
        if compared is not None:
            yield compared


def _shared_verb(words: Sequence[str], verbs: Mapping[str, Sequence[int]]) -> tuple[int | None, tuple[int, ...]]:
    """Return the place of a question's verb and its places in a sentence; `verbs` has the places of each lemma."""
    begin = next((place for place, word in enumerate(words) if word in _ASKS), len(words))
    has_auxiliary = False
    for place in range(begin + 1, len(words)):
        word, before = words[place], words[place - 1]
        has_auxiliary |= word in _DO
        lemmas = verb_lemmas(word)
        if (
            not lemmas
            or word in _AUXILIARIES
            or word in FUNCTION_WORDS
            or _is_compared(words, place)
            or before in _NO_VERB_BEHIND
            or before == "which"
            or words[place + 1 : place + 2] in _BEHIND_NOUN
        ):
            continue
        is_base = word in lemmas
        if (has_auxiliary and not is_base) or (before == "what" and is_base):
            continue
        found = tuple(sorted({spoken for lemma in lemmas for spoken in verbs.get(lemma, ())}))[:_MOST_SPOKEN]
        if found or not is_base:
            return place if found else None, found
    return None, ()


def _is_compared(words: Sequence[str], place: int) -> bool:
    """Return True for "lighter" in "is lighter", which is a verb elsewhere."""
    return place > 0 and words[place].endswith("er") and words[place - 1] in _BE


def _asked(words: Sequence[str], verb: int) -> _Asked | None:
    """Return what a question asks about its verb, or None if that is not clear."""
    asks = max((place for place in range(verb) if words[place] in _ASKS), default=0)
    between, behind = words[asks + 1 : verb], words[verb + 1 :]
    before = words[asks - 1] if asks and words[asks - 1] in _PREPOSITIONS else ""
    auxiliary = next((place for place, word in enumerate(between) if word in _AUXILIARIES), None)
    inverted = between[auxiliary + 1 :] if auxiliary is not None else ()
    subject = _content(inverted)
    verbs = verb_lemmas(words[verb])
    if not _BE.isdisjoint(between) and not words[verb].endswith("ing") and _DO.isdisjoint(between):
        if subject:
            by = before == "by" or (not before and words[-1] == "by")
            return _Asked(for_subject=True, others=(subject,)) if by else None
        agent = _content(_until_setting(behind[1:])) if behind[:1] == ("by",) else frozenset[str]()
        is_clear = agent or (words[verb] not in verbs and behind[:1] != ("by",))
        return _Asked(for_subject=False, others=(agent,) if agent else ()) if is_clear and not before else None
    if before not in {"", "to", "from"}:
        return None
    preposition = behind[0] if behind and behind[0] in _PREPOSITIONS else ""
    if subject or not _SUBJECT_PRONOUNS.isdisjoint(inverted):
        preposition = before or (words[-1] if words[-1] in _PREPOSITIONS else "")
        asked = _Asked(for_subject=False, others=(subject,) if subject else (), preposition=preposition)
    elif auxiliary is None and asks and words[asks] not in _ASKS_FOR_KIND and (related := _content(between)):
        asked = _Asked(for_subject=False, others=(related,))
    else:
        asked = _Asked(for_subject=True, others=tuple(_objects(_until_setting(behind))), preposition=preposition)
    symmetric = not _SYMMETRIC.isdisjoint(verbs) or not _JOINT.isdisjoint((preposition, *behind[:2]))
    return None if symmetric and preposition != "for" else asked


def _objects(words: Sequence[str]) -> Iterator[frozenset[str]]:
    """Yield the words of each object: "the book" and "Anna" of "the book to Anna"."""
    begin = 0
    for place in range(1, len(words) + 1):
        if place == len(words) or words[place] in _SPLITS:
            found = _content(words[begin:place])
            if found:
                yield found
            begin = place


def _until_setting(words: Sequence[str]) -> Sequence[str]:
    """Return the words before a phrase of time or place: "in the final"."""
    end = next((place for place, word in enumerate(words) if place and word in _SETTINGS), len(words))
    return words[:end]


def _content(words: Sequence[str]) -> frozenset[str]:
    return frozenset(
        lemma
        for word in words
        if (lemma := number_or_lemma(word)) not in FUNCTION_WORDS
        and lemma not in {_OWNER, _BREAK}
        and not (word.endswith("ly") and len(word) > 4)
    )


@dataclass(frozen=True, slots=True)
class _Clause:
    """A sentence with the words of the reference.

    Attributes:
        words: The folded words.
        lemmas: Their lemmas.
        wanted: The reference's words.
    """

    words: Sequence[str]
    lemmas: Sequence[str]
    wanted: frozenset[str]

    def is_subject(self, verb: int, asked: _Asked) -> bool | None:
        """Return True if the wanted words are the subject of a verb, False if they are its object, None if neither."""
        ours = self._side(self.wanted, verb)
        if ours is None:
            return None
        found = {
            role
            for other in asked.others
            if (theirs := self._side(other - self.wanted, verb)) is not None
            and (role := self._role(ours, theirs, verb, asked)) is not None
        }
        if not found and not any(other.intersection(self.lemmas) for other in asked.others):
            return self._beside_pronoun(ours, verb, asked)
        return asked.for_subject if asked.for_subject in found else next(iter(found), None)

    def _beside_pronoun(self, ours: Sequence[int], verb: int, asked: _Asked) -> bool | None:
        """Read "She taught Tom", "Ravi sent him to Tom", "Tom taught him" and, without others, "Tom fired Anna"."""
        before, behind = self.words[verb - 1 : verb], self.words[verb + 1 : verb + 2]
        is_named = bool(before) and before[0] not in known_words() and self._marker(ours[0]) in {"to", "from"}
        if ours[0] > verb and (is_named or not _SUBJECT_PRONOUNS.isdisjoint(before)):
            return self._role(ours, (verb - 1,), verb, asked)
        names = behind and (behind[0] in _DETERMINERS - _PREPOSITIONS or behind[0] not in known_words())
        if ours[-1] == verb - 1 and behind and (behind[0] in _OBJECT_PRONOUNS or (names and not asked.others)):
            return self._role(ours, (verb + 1,), verb, asked)
        return None

    def _side(self, words: frozenset[str], verb: int) -> list[int] | None:
        """Return the places of words that all stand on one side of a verb, if at least half of them are there."""
        places = [place for place, word in enumerate(self.lemmas) if word in words and place != verb]
        present = frozenset(self.lemmas[place] for place in places)
        one_side = len({place < verb for place in places}) == 1
        return places if one_side and 2 * len(present) >= len(words) else None

    def _role(self, ours: Sequence[int], theirs: Sequence[int], verb: int, asked: _Asked) -> bool | None:
        if ours[0] < verb < theirs[0]:
            return self._is_active(ours, theirs, verb, asked)
        if theirs[0] < verb < ours[0]:
            active = self._is_active(theirs, ours, verb, asked)
            return None if active is None else not active
        if ours[0] < verb:
            return self._is_second_subject(ours, theirs, verb)
        return True if self._marker(ours[0]) == "by" else None

    def _is_active(self, before: Sequence[int], behind: Sequence[int], verb: int, asked: _Asked) -> bool | None:
        """Return True if the first words are a verb's subject, False if they are its object: "X was beaten by Y"."""
        near, between = self._auxiliaries(verb), self.words[verb + 1 : behind[0]]
        is_participle = not _BE.isdisjoint(near) and not self.words[verb].endswith("ing")
        if "by" in between:
            return False if is_participle or between[0] == "by" or "being" in near else None
        if (
            is_participle
            or not _INTERRUPTS.isdisjoint((*self.words[before[-1] + 1 : verb], *between))
            or not _ENDS_CLAUSE.isdisjoint(between)
            or self._marker(before[0])
        ):
            return None
        marker = self._marker(behind[0])
        return True if marker == asked.preposition or (marker in _GOVERNED and asked.preposition in _GOVERNED) else None

    def _auxiliaries(self, verb: int) -> Sequence[str]:
        """Return the words shortly before a verb, as far as its clause goes."""
        begin = max(0, verb - _MOST_SKIPPED)
        relative = max((place for place in range(begin, verb) if self.words[place] in _RELATIVES), default=begin - 1)
        return self.words[relative + 1 : verb]

    def _is_second_subject(self, ours: Sequence[int], theirs: Sequence[int], verb: int) -> bool | None:
        """Read "It was Porto that Ajax beat" and "the man whom the dog bit"."""
        first, second = (ours, theirs) if ours[-1] < theirs[0] else (theirs, ours)
        between = self.words[first[-1] + 1 : second[0]]
        if _RELATIVES.isdisjoint(between) or verb - second[-1] > 2 or self.words[verb + 1 : verb + 2] == ("by",):
            return None
        return second is ours

    def _marker(self, place: int) -> str:
        """Return the preposition before a noun phrase, or ""."""
        for word in reversed(self.words[max(0, place - _MOST_SKIPPED) : place]):
            if word in _PREPOSITIONS:
                return word
            if word == _BREAK or verb_lemmas(word):
                return ""
        return ""


def _relations(words: Sequence[str], lemmas: Sequence[str], wanted: frozenset[str]) -> Iterator[bool]:
    """Read nouns of a relation: after "Who is the mother of Ann?", "Ann is the mother of Eve" is reversed for Eve."""
    for place, word in enumerate(words[:-1]):
        noun, owners = "", frozenset[str]()
        if word == "of" and place and words[place + 1] not in _ASKS:
            noun, owners = number_or_lemma(words[place - 1]), _content(_until_setting(words[place + 1 :]))
        elif word == _OWNER:
            noun, owners = number_or_lemma(words[place + 1]), _content(words[max(0, place - 2) : place])
        if not noun or noun in FUNCTION_WORDS or noun in _NO_RELATIONS or noun in _SYMMETRIC or not owners:
            continue
        owner = _owner_of(noun, lemmas)
        if owner & owners:
            yield False
        elif wanted <= owner and not owners.isdisjoint(lemmas):
            yield True


def _predicates(words: Sequence[str], sentence: _Sentence, wanted: frozenset[str]) -> Iterator[bool]:
    """Read adjectives with a preposition: after "Who is afraid of Ann?", "Ann is afraid of Tom" is reversed for Tom."""
    pairs = {pair: place for place, pair in enumerate(pairwise(words)) if pair[1] in _BEHIND_ADJECTIVE and place > 1}
    for (word, preposition), place in pairs.items():
        if (
            word not in sentence.words
            or word in _NO_ADJECTIVES
            or verb_lemmas(word)
            or words[place + 2 : place + 3] in _BEHIND_NAMED
        ):
            continue
        behind, before = _content(_until_setting(words[place + 2 :])), _content(words[:place]) - {word}
        others = (behind or before) - wanted
        for said in range(len(sentence.words) - 2):
            if sentence.words[said] == word and sentence.words[said + 1] == preposition:
                left = frozenset(sentence.lemmas[:said])
                right = frozenset(sentence.lemmas[said + 2 : said + 2 + _MOST_SKIPPED])
                if wanted <= right and not left.isdisjoint(others) and wanted.isdisjoint(left):
                    yield bool(behind)
                elif wanted <= left and not right.isdisjoint(others) and wanted.isdisjoint(right):
                    yield not behind


def _owner_of(noun: str, lemmas: Sequence[str]) -> frozenset[str]:
    """Return the words of whom a sentence gives a noun: "Plato" in "the teacher of Plato" and "Plato's teacher"."""
    found: set[str] = set()
    for place, word in enumerate(lemmas):
        if word == noun:
            if lemmas[place + 1 : place + 2] == ("of",):
                found.update(lemmas[place + 2 : place + 2 + _MOST_SKIPPED])
            if place > 1 and lemmas[place - 1] == _OWNER:
                found.add(lemmas[place - 2])
    return frozenset(found)


def _compared(words: Sequence[str], sentence: _Sentence, wanted: frozenset[str]) -> bool | None:
    """Return True if a sentence gives the wanted words the other end of the question's comparison."""
    than = sentence.words.index("than")
    asked, said = next(_degrees(words), None), next(reversed(tuple(_degrees(sentence.words[:than]))), None)
    if asked is None or said is None:
        return None
    if asked[0] & said[0]:
        same = asked[1] == said[1]
    elif any(not opposites(word).isdisjoint(said[0]) for word in asked[0]):
        same = asked[1] != said[1]
    else:
        return None
    if words[-1] == "than":
        same = not same
    before, behind = frozenset(sentence.lemmas[:than]), frozenset(sentence.lemmas[than:])
    if bool(wanted & before) == bool(wanted & behind):
        return None
    known = _content(words) - wanted - asked[0]
    other = behind if wanted & before else before
    if known and known.isdisjoint(other) and _SUBJECT_PRONOUNS.isdisjoint(other):
        return None
    return bool(wanted & before) != same


def _degrees(words: Sequence[str]) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield the forms of each adjective that is compared, and False for "less" and "least"."""
    for place, word in enumerate(words):
        ending = "est" if word.endswith("est") else "er"
        if word in {"more", "most", "less", "least"}:
            behind = words[place + 1 : place + 2]
            compared = behind[0] if behind and behind[0] not in {"than", *_ASKS} else "much"
            yield frozenset({compared}), word in {"more", "most"}
        elif word.endswith(ending) and len(word) > len(ending) + 1 and word not in FUNCTION_WORDS:
            stem = word.removesuffix(ending)
            forms = {stem, f"{stem}e", f"{stem}er", stem[:-1] if stem[-1] == stem[-2:-1] else f"{stem[:-1]}y"}
            if any(form in antonym_table() or form in OPPOSITES for form in (word, *forms)):
                yield frozenset(forms), True
