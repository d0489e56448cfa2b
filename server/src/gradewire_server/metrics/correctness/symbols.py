"""Compare what must be the same: the signs of matrices, intervals and points, single letters, and names."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from rapidfuzz.distance import JaroWinkler

from gradewire_server.metrics.correctness.words import STOP_WORDS, VOCABULARY, FeatureText, folded, number_or_lemma
from gradewire_server.metrics.text.normalise import known_words

_MAX_CHARACTERS: Final = 1_024
_MOST_STRUCTURES: Final = 16
_MOST_REFERENCES: Final = 8
_MAX_CACHED_REFERENCES: Final = 1_024
"""Maximum number of references, of at most 512 characters each, whose letters stay in the cache."""
_ENVIRONMENT: Final = re.compile(r"\\(?:begin|end)\{[a-zA-Z*]{1,16}\}")
_ROW_END: Final = re.compile(r"\\\\")
_SIZE: Final = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])")
_STRUCTURE: Final = re.compile(r"[\[(][^\w\n]{0,8}[^\n]{0,400}[\])]")
_SEPARATED: Final = re.compile(r"[^\s,;&][^,;&\n]*[,;&][^,;&\n]*[^\s,;&]")
_LONGEST_FORMULA: Final = 64
_SIGNS: Final = re.compile("[<>+\u2264\u2265\u00b1]")
_ALL_SIGNS: Final = re.compile("[-<>+\u2264\u2265\u00b1*/=^|!~]")
_LETTER: Final = re.compile(r"(?<![\w.'])[A-Z](?![\w'])(?!\.\s?[A-Z])")
# Units, scales and the numerals of kings are no letters that stand for themselves: "5 V", "20 °C", "George V".
_NO_LETTER: Final = re.compile(r"(?:\d\s?|\u00b0\s?)[A-Z](?![\w'])|(?<=[a-z]\s)[IVX](?![\w'])")
_ARTICLE_OR_PRONOUN: Final = re.compile(r"(?:^|[.!?]\s+)A(?=\s+[a-z])|\bI(?=\s+[a-z])")

_MOST_NAMES: Final = 12
_MOST_WORDS_OF_NAME: Final = 5
_MOST_TOKENS: Final = 512
_LEAST_LETTERS: Final = 3
_MOST_LETTERS_OF_SHORT_FORM: Final = 4
_SAME_NAME: Final = 0.9
"""Minimum similarity of two spellings of one name."""
_SIMILAR_NAME: Final = 0.8
"""Minimum similarity of two words that may be spellings of one name, where a part of the name is right."""
_ARTICLES: Final = frozenset(VOCABULARY["words"]["articles"].split())
_POSSESSIVES: Final = frozenset({"'s", "\u2019s", "s'", "s\u2019"})
_TOKEN: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_TITLES: Final = STOP_WORDS.union(VOCABULARY["words"]["titles"].split())


def symbol_altered(references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if an answer gives a reference's structure or letter in another form, 0 if not.

    Structures are numbers or names in brackets with separators: "(0, 1.5)" for "(0, 1)", or a matrix with other rows.
    Formulas may not differ in their signs alone. Letters are capitals that stand alone: "a vitamin" for "Vitamin A". An
    answer without capitals is no conflict if it has the reference word for word.
    """
    raw = answer.raw[:_MAX_CHARACTERS]
    found = [_is_altered(reference.raw, raw, reference, answer) for reference in references[:_MOST_REFERENCES]]
    return float(bool(found) and all(found))


def _is_altered(reference: str, raw: str, wanted: FeatureText, answer: FeatureText) -> bool:
    if _has_other_signs(reference, raw):
        return True
    ours = _structures(reference)
    if len(ours) == 1 and (theirs := _structures(raw)) and _core(reference) in ours:
        return ours.isdisjoint(theirs)
    return _lacks_letter(reference, raw, wanted, answer)


def _has_other_signs(reference: str, raw: str) -> bool:
    """Return True if a formula differs only in its signs: "x < 3" for "x > 3", "2 - 3i" for "2 + 3i"."""
    if not (_SIGNS.search(reference) or _SIGNS.search(raw)):
        return False
    ours, theirs = ("".join(text.split()).strip("$.").replace("\u2212", "-").casefold() for text in (reference, raw))
    if len(ours) > _LONGEST_FORMULA or ours == theirs:
        return False
    plain, said = (_ALL_SIGNS.sub("", text) for text in (ours, theirs))
    return bool(plain) and plain == said


def _core(text: str) -> str:
    return next(iter(_structures(text.strip(" .$"))), "")


def _structures(text: str) -> frozenset[str]:
    """Return the outermost structures of a text in one notation, without blanks."""
    if not any(sign in text for sign in "[(") and "\\begin" not in text:
        return frozenset()
    plain = _ENVIRONMENT.sub(lambda match: "[[" if "begin" in match[0] else "]]", text)
    plain = _SIZE.sub("", _ROW_END.sub("],[", plain)).replace("&", ",").replace("\\infty", "\u221e").replace("\\", "")
    found = (match[0] for match in islice(_STRUCTURE.finditer(plain), _MOST_STRUCTURES))
    return frozenset("".join(each.split()) for each in found if _SEPARATED.search(each[1:-1]))


@lru_cache(maxsize=_MAX_CACHED_REFERENCES)
def _letters(reference: str) -> frozenset[str]:
    """Return the letters that stand for themselves in the beginning of a reference."""
    return frozenset(_LETTER.findall(_NO_LETTER.sub(" ", _ARTICLE_OR_PRONOUN.sub(" ", reference))))


def _lacks_letter(reference: str, raw: str, wanted: FeatureText, answer: FeatureText) -> bool:
    letters = _letters(reference)
    if not letters or len(wanted.words) > len(letters) + 1:
        return False
    if not any(map(str.isupper, raw)):
        return wanted.spaced not in answer.spaced
    said = {match[0] for match in _LETTER.finditer(_ARTICLE_OR_PRONOUN.sub(" ", raw))}
    # Without the letter, an answer that has the other words is another member of the kind.
    others = [word for word in wanted.words if word not in STOP_WORDS and word.upper() not in letters]
    return not letters <= said and (not others or any(word in answer.distinct for word in others))


def name_altered(
    question: FeatureText, references: Sequence[FeatureText], said: frozenset[str], answer: FeatureText
) -> float:
    """Return 1 if an answer has one end of a reference's name beside another name, and no reference; otherwise 0.

    Only names of two to five capitalised words count. Middle names, initials, titles and similar spellings do not.

    Args:
        question: The question, whose words are no other names.
        references: The references.
        said: The answer's words, and the references' words that the answer has in another form.
        answer: The answer.
    """
    references = references[:_MOST_NAMES]
    names = [name for reference in references if (name := _name(reference.raw)) and not said.isdisjoint(name)]
    if not names:
        return 0.0
    tokens = _TOKEN.findall(answer.raw)[:_MOST_TOKENS]
    words = [folded(token).strip() for token in tokens]
    known = question.distinct.union(*(reference.distinct for reference in references))
    given = [reference for reference in references if said.issuperset(reference.content)]
    if given:
        parts = [_alias(reference, names) for reference in given]
        return float(all(part and _stands_in_other_names(part, others, answer.raw, known) for part, others in parts))
    return float(
        any(
            word == kept
            and 0 <= place + step < len(words)
            and _is_another(tokens[place + step], words[place + step], lacking, known)
            and (step > 0 or words[place + step] not in known_words())
            and (kept not in _TITLES or _is_longer(words[place + step], lacking))
            for name in names
            for kept, lacking, step in ((name[-2], name[-1], 1), (name[1], name[0], -1))
            if lacking not in said and lacking not in _TITLES
            for place, word in enumerate(words)
        )
    )


def _alias(reference: FeatureText, names: Sequence[list[str]]) -> tuple[str, frozenset[str]]:
    """Return a reference of one word that is a part of longer names, and their other words; "" if it is none."""
    word = reference.content[0]
    alone = len(reference.content) == 1 and len(word) >= _LEAST_LETTERS and reference.raw[:1].isupper()
    others = frozenset(other for name in names if word in name for other in name) - {word}
    return (word if alone and others else ""), others


def _stands_in_other_names(part: str, others: frozenset[str], raw: str, known: frozenset[str]) -> bool:
    """Return True if each mention of a name's part has another name directly before or behind it."""
    found = list(islice(_TOKEN.finditer(raw), _MOST_TOKENS))
    places = [place for place, match in enumerate(found) if folded(match[0]).strip() == part]
    return bool(places) and all(
        found[place][0][0].isupper()
        and any(
            0 <= place + step < len(found)
            and _beside(raw, found[place], found[place + step])
            and _may_be_name(found[place + step][0], others, known)
            and not (step < 0 < place + step and _introduces(found[place + step - 1][0]))
            for step in (-1, 1)
        )
        for place in places
    )


def _introduces(token: str) -> bool:
    """Return True if the word behind a token is no first name: "Der Dichter Lessing", "In Paris Picasso"."""
    return token.lower() in _ARTICLES or (token[0].isupper() and token.lower() in STOP_WORDS)


def _beside(raw: str, one: re.Match[str], other: re.Match[str]) -> bool:
    return raw[min(one.end(), other.end()) : max(one.start(), other.start())] == " "


def _may_be_name(token: str, others: frozenset[str], known: frozenset[str]) -> bool:
    word = folded(token).strip()
    return (
        token[0].isupper()
        and token[-2:] not in _POSSESSIVES
        and len(word) >= _LEAST_LETTERS
        and word not in _TITLES
        and known.isdisjoint((word, number_or_lemma(word)))
        and word not in known_words()
        and not any(word.startswith(other[:2]) or _is_spelling(word, other) for other in others)
    )


def _name(text: str) -> list[str]:
    """Return the folded words of a name, or an empty list."""
    tokens = _TOKEN.findall(text)
    if not 1 < len(tokens) <= _MOST_WORDS_OF_NAME or not all(token[0].isupper() for token in tokens):
        return []
    return [folded(token).strip() for token in tokens]


def _is_another(token: str, word: str, lacking: str, known: frozenset[str]) -> bool:
    return (
        token[0].isupper()
        and min(len(word), len(lacking)) >= _LEAST_LETTERS
        and word not in _TITLES
        and known.isdisjoint((word, number_or_lemma(word)))
        and (_is_longer(word, lacking) or JaroWinkler.normalized_similarity(word, lacking) < _SAME_NAME)
        and (
            _is_longer(word, lacking)
            or not (min(len(word), len(lacking)) <= _MOST_LETTERS_OF_SHORT_FORM and word[:3] == lacking[:3])
        )
    )


def _is_longer(word: str, name: str) -> bool:
    """Return True if a surname only begins like another one: "Hendrickson", "Hendricks"."""
    return len(word) - len(name) in {2, 3} and word.startswith(name) and len(name) > _LEAST_LETTERS and word.isalpha()


def _is_spelling(word: str, name: str) -> bool:
    return JaroWinkler.normalized_similarity(word, name) >= _SIMILAR_NAME
