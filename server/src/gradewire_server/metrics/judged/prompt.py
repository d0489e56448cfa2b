"""Fill an item's texts into a judge's prompt, and hide words with which an answer praises itself."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gradewire_proto.choices import ShownReferences
from gradewire_server.domain.items import Failure, Image, Item, Status
from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.metrics.common import check_question, has_letter_or_digit
from gradewire_server.metrics.judged.references import (
    CountedReferences,
    View,
    count_references,
    is_binary,
    shown_references,
    without_rare,
    write_references,
)
from gradewire_server.metrics.prompts.neutralise import MAX_CHARACTERS, Delimiters, any_of, cut_to_words, neutralise
from gradewire_server.metrics.prompts.prompt_file import (
    DEMONSTRATION_SETS,
    Demonstration,
    Layout,
    PromptFile,
    Step,
    Variant,
)
from gradewire_server.metrics.prompts.template import Rendered
from gradewire_server.metrics.text.folding import READINGS, Reading, as_written, folded, with_marks, without_dress
from gradewire_server.metrics.text.words import MAX_WORDS
from gradewire_server.metrics.text.yes_no import leading_verdict

_OPPOSITES: Final = (
    ("true", "false"), ("right", "left"), ("right", "wrong"), ("correct", "incorrect"), ("correct", "wrong"),
    ("accurate", "inaccurate"), ("valid", "invalid"), ("perfect", "imperfect"), ("flawless", "flawed"),
    ("exact", "inexact"), ("exact", "approximate"), ("acceptable", "unacceptable"), ("accepted", "rejected"),
    ("fact", "opinion"), ("fact", "fiction"), ("fact", "myth"), ("truth", "lie"), ("truth", "dare"),
    ("similar", "different"), ("related", "unrelated"),
)  # fmt: skip
"""Pairs of opposites. At least one word is a label or praise, but a question may offer both ("Right or left?")."""
_MAX_WORDS_OF_CHOICE: Final = 4
_CHOICE_WORD: Final = re.compile(r"\w+")
# Without `\b`, each letter of a word would begin a search of its rest: 6 s for a question of 32,768 letters.
_OFFER: Final = re.compile(r"\b(\w+) ?,?(?: or |/| / )(?:(?:is it|a|an|the) )?(?=(\w+))")


def words_of_choice(question: str, references: Iterable[str]) -> set[str]:
    """Return `folded` words that answer this question, although they would be self-praise elsewhere.

    These are the words around "or" in the question ("Left or right?") and their opposites. References of at most four
    words add the opposites of their words ("right" for "left").
    """
    offered = {word for sides in _OFFER.findall(folded(question)) for word in sides}
    said = (_CHOICE_WORD.findall(folded(reference)) for reference in references)
    return offered.union(
        _opposites(offered), *(_opposites(words) for words in said if len(words) <= _MAX_WORDS_OF_CHOICE)
    )


def _opposites(words: Collection[str]) -> Iterator[str]:
    for one, other in _OPPOSITES:
        if one in words:
            yield other
        if other in words:
            yield one


PLACEHOLDER: Final = "[...]"
"""The text that replaces removed words. It is not a word, so it cannot be a prompt's label."""

_LABEL_WORD: Final = re.compile(r"\w+")
_LEAST_LETTERS: Final = 4
"""Minimum number of letters in a long word. Labels without a long word (yes, no, 3, A) are removed only after
"Rating" and the like."""

_PRAISE: Final = "correct|right|true|accurate|valid|perfect|flawless|exact|acceptable|accepted|spot on|the truth|a fact"
_SUBJECT: Final = (
    r"(?:this|that|it|which|what|these|those|they|both|all|everything|i|we|you|he|she|of|the|my|your|our|his|her|their"
    r"|above|given|whole|said|say|wrote|student|student's|final|answers?|response|solution|reply|statement|prediction"
    r"|claim|sentence|here)"
)
_BEING: Final = r"(?:'s|'re|'m|(?:(?:is|are|am|was|were|must be|should be|has to be|counts? as|seems?)(?!\w)))"
_ADVERB: Final = (
    r"(?:absolutely|totally|completely|fully|entirely|definitely|certainly|indeed|also|very|quite|perfectly|100 ?%|"
    r"undoubtedly|clearly|exactly|really|factually|obviously|surely|of course|all|still|a|the)"
)
_ANSWER: Final = r"(?:answers?|response|solution|reply|one|statement)"
_MATCHING: Final = (
    r"(?:match(?:es|ed)?|equals?|agrees? with|fits|corresponds? to|means? the same as"
    r"|(?:is|are) (?:exactly |also )?(?:the same as|identical to|equal to|equivalent to|in|one of))"
    r" (?:exactly |fully |one of )?(?:the|your|any|all|every|each)(?: \w{1,16}){0,2} (?:keys?|references?|answers?)"
)
_ANNOUNCING: Final = r"rating|grade|score|marks?|verdict|evaluation|assessment"
_CLAUSE_END: Final = r"(?=[ ]?(?:[.,;:!?)\]\"<]|$)|[ ](?:-|and|but|so|because|as|since|here|now)(?!\w))"


def without_praise(text: str, delimiters: Delimiters, references: Sequence[str], *, question: str = "") -> str:
    """Replace an answer's verdicts on itself with PLACEHOLDER.

    These are replaced, in all READINGS of the text:

    - the prompt's labels that contain a word of at least four letters, as whole words ("correct", "incorrectly");
    - clauses that praise ("my answer is absolutely right"), and praise before "answer" ("the right answer");
    - clauses that claim a match ("it is the same as the accepted answer");
    - ratings, with or without the prompt's openings ("The student's answer is yes", "score: 10/10").

    An answer that consists of only one such word stays ("Right."). Text also stays if all its words are in the shown
    references or in `words_of_choice`. Numbers after "score", "grade" and the like stay if the question contains this
    word. If the prompt has no labels, nothing changes. A second call changes nothing.
    """
    if not delimiters.labels or _one_word(delimiters).fullmatch(folded(text)):
        return text
    said = " ".join(references)
    bare_labels = " ".join(said[begin:end] for begin, end in _bare_labels(said, delimiters))
    answers = _words_of_all_readings(said) | _words_of_all_readings(bare_labels) | words_of_choice(question, references)
    scales = answers.union(_words_of_all_readings(question))
    left = _removed(text, delimiters, answers, scales)
    # The changed text may match again. The loop ends, because the text loses a word each time.
    while left != text:
        text, left = left, _removed(left, delimiters, answers, scales)
    return left


def _removed(text: str, delimiters: Delimiters, answers: set[str], scales: set[str]) -> str:
    for read in READINGS:
        if text.isascii() and read is not as_written:
            return text
        reading = read(text)
        praise = (each for each in _praise(delimiters).finditer(reading.text) if not _is_answer(each, answers, scales))
        text = _with_placeholders(text, (reading.original(*match.span()) for match in praise))
    bare = _bare_labels(text, delimiters)
    return _with_placeholders(
        text,
        (part for part in bare if not answers.issuperset(_LABEL_WORD.findall(without_dress(text[slice(*part)]).text))),
    )


def _with_placeholders(text: str, parts: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    end = 0
    for part in parts:
        begin, behind = with_marks(text, *part)
        pieces += (text[end:begin], PLACEHOLDER)
        end = behind
    return "".join((*pieces, text[end:]))


def _bare_labels(text: str, delimiters: Delimiters) -> Iterator[tuple[int, int]]:
    """Yield the range of each ASCII label that touches no ASCII letter, since a judge reads "correctж" as "correct"."""
    reading = without_dress(text)
    behind = 0
    for found in _bare_label(delimiters).finditer(reading.text):
        begin = found.start()
        said = next((label for label in _bare_forms(delimiters) if _is_separate(text, reading, begin, label)), "")
        if said and begin >= behind:
            behind = begin + len(said)
            yield reading.original(begin, behind)


def _is_separate(text: str, reading: Reading, begin: int, label: str) -> bool:
    if not reading.text.startswith(label, begin):
        return False
    for edge, place in ((label[0], begin - 1), (label[-1], begin + len(label))):
        if 0 <= place < len(reading.text):
            beside = text[reading.places[place]]
            if beside.isascii() and (beside.isalpha() or (beside.isdigit() and edge.isdigit())):
                return False
    return True


def _words_of_all_readings(text: str) -> set[str]:
    if text.isascii():  # all readings are equal
        return set(_LABEL_WORD.findall(folded(text)))
    return {word for read in READINGS for word in _LABEL_WORD.findall(read(text).text)}


def _is_answer(match: re.Match[str], answers: set[str], scales: set[str]) -> bool:
    said = next(match[name] for name in ("clause", "match", "rating", "praise", "label") if match[name])
    number = match["rating"] is not None and any(map(str.isdigit, match["rating"]))
    asked_for = match["scale"] in answers or (number and match["scale"] in scales)
    return answers.issuperset(_LABEL_WORD.findall(said)) or (match["scale"] is not None and asked_for)


def _long_labels(delimiters: Delimiters) -> tuple[str, ...]:
    return tuple(label for label in delimiters.labels if any(map(_is_long, _LABEL_WORD.findall(label))))


def _label_pattern(delimiters: Delimiters) -> str:
    long_labels = _long_labels(delimiters)
    return rf"(?:{any_of(long_labels)})(?:ly|ness)?" if long_labels else r"(?!)"


@lru_cache(maxsize=256)
def _bare_forms(delimiters: Delimiters) -> tuple[str, ...]:
    labels = {" ".join(folded(label).split()) for label in _long_labels(delimiters) if label.isascii()}
    return tuple(sorted((label + end for label in labels for end in ("", "ly", "ness")), key=len, reverse=True))


@lru_cache(maxsize=256)
def _bare_label(delimiters: Delimiters) -> re.Pattern[str]:
    """Return a pattern that finds the start of every bare form, even of a form inside another form."""
    forms = _bare_forms(delimiters)
    return re.compile(rf"(?=(?:{any_of(forms)}))" if forms else r"(?!)")


@lru_cache(maxsize=256)
def _one_word(delimiters: Delimiters) -> re.Pattern[str]:
    label = _label_pattern(delimiters)
    return re.compile(rf"[\W_]*(?:it(?: is|'s) )?(?:not )?(?:(?:a|an|the) )?(?:{_PRAISE}|{label})[\W_]*")


@lru_cache(maxsize=256)
def _praise(delimiters: Delimiters) -> re.Pattern[str]:
    # A digit after a label belongs to a footnote, unless the label ends with a digit.
    label = rf"{_label_pattern(delimiters)}(?![^\W\d_])(?:(?<!\d)|(?!\d))"
    any_label = (
        rf"(?:(?:{any_of(delimiters.labels)})(?![^\W_]|[-.,:/]\d)"
        rf"|\d{{1,3}} ?/ ?\d{{1,3}}(?![^\W_])|(?:{_PRAISE})(?![^\W_]))"
    )
    announcing = rf"{any_of(delimiters.announcing)}|{_ANNOUNCING}" if delimiters.announcing else _ANNOUNCING
    return re.compile(
        rf"(?<![^\W_])(?:"
        rf"(?:{_SUBJECT}(?: |(?='))){{1,6}}{_BEING}[\W_]{{0,6}}(?:{_ADVERB}[ ,]{{1,2}}){{0,3}}"
        rf"(?P<clause>{label}|(?:{_PRAISE})(?: {_ANSWER})?{_CLAUSE_END})"
        rf"|(?:{_SUBJECT} ){{1,6}}(?P<match>{_MATCHING})(?![^\W_])"
        rf"|(?P<scale>{announcing})(?:[ ]?[-:=(\"'*_][\W_]{{0,5}}(?:(?:is|of|as|to) )?|[ ](?:is|of|as|to)[ ](?:- )?)"
        rf"(?P<rating>{any_label})"
        rf"|(?P<praise>(?:{_PRAISE})(?= {_ANSWER}(?![^\W_])))"
        rf")|(?<![^\W\d_])(?:(?<!\d)|(?!\d))(?P<label>{label})"
    )


def _is_long(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS or (word.isalpha() and not word.isascii() and len(word) > 1)


def demonstration_set(file: PromptFile, variant: Variant, kind: str, shots: int | None) -> str:
    """Return the demonstration set to use: `kind` if `file` has it, otherwise the first existing set; "" means none."""
    if not variant.demonstrations or shots == 0:
        return ""
    return next((name for name in (kind, *DEMONSTRATION_SETS) if name in file.demonstrations), "")


@lru_cache(maxsize=256)
def fixed_turns(file: PromptFile, variant_name: str, kind: str, view: View) -> tuple[Turn, ...]:
    """Return the turns before an item's turn: the instructions, and two turns for each demonstration."""
    variant = file.variants[variant_name]
    shown = demonstration_set(file, variant, kind, view.shots)
    solved = file.demonstrations[shown][: view.shots] if shown else ()
    written = [variant.item.render(_demonstrated(file, variant, demonstration, view)) for demonstration in solved]
    return turns_before(variant, zip(written, solved, strict=True), caption=view.caption, image=view.image)


def turns_before(
    variant: Variant, solved: Iterable[tuple[Rendered, Demonstration]], *, caption: bool, image: bool
) -> tuple[Turn, ...]:
    """Return the turns with the instructions and the demonstrations."""
    system = variant.instructions(caption=caption, image=image)
    turns = [Turn(Role.SYSTEM, system)] if system else []
    for user, assistant in variant.exchanges:
        turns += (Turn(Role.USER, user), Turn(Role.ASSISTANT, assistant))
    for shown, demonstration in solved:
        turns.append(Turn(Role.USER, shown.text))
        turns.append(Turn(Role.ASSISTANT, _demonstrated_turn(variant, demonstration.answers)))
    return tuple(turns)


def _demonstrated_turn(variant: Variant, answers: Mapping[str, str]) -> str:
    if variant.max_tokens and variant.reply is not None:
        return variant.reply.render(answers).text
    return previous_answers(variant.steps, answers)


def judge_prompt(
    fixed: tuple[Turn, ...],
    item: Rendered,
    variant: Variant,
    answers: Mapping[str, str],
    images: tuple[Image, ...] = (),
) -> JudgePrompt:
    """Return the prompt for the first step that has no answer yet; `answers` are the earlier steps' answers by name.

    In a variant with one text, the judge's turn begins with nothing.
    """
    lead = item.lead
    if variant.layout is Layout.TEXT:
        fixed, lead = (), f"{_text_of(fixed)}{lead}"
    if variant.max_tokens:
        return JudgePrompt(fixed, lead, item.prediction, item.tail, "", images)
    step = next(step for step in variant.steps if step.name not in answers)
    done = [step for step in variant.steps if step.name in answers]
    before = [previous_answers(done, answers)] if done else []
    return JudgePrompt(fixed, lead, item.prediction, item.tail, "\n".join((*before, step.opening)), images)


def _text_of(fixed: tuple[Turn, ...]) -> str:
    """Return the turns as one text. A judge's turn follows on the same line if the turn before it asks for it."""
    text = ""
    for turn in fixed:
        if turn.role is Role.ASSISTANT:
            text = f"{text.removesuffix(_BETWEEN)}{' ' if text.endswith((f':{_BETWEEN}', f'={_BETWEEN}')) else _LINE}"
        text += f"{turn.text}{_BETWEEN}"
    return text


def text_prompt(file: PromptFile, variant_name: str, fields: Mapping[str, str]) -> JudgePrompt:
    """Return the prompt that requests a synthetic answer: the variant's first step, filled with `fields`.

    Each text in `fields` is cut to MAX_WORDS words and neutralised.
    """
    variant = file.variants[variant_name]
    shown = {name: neutralise(cut_to_words(text, MAX_WORDS)[0], variant.delimiters) for name, text in fields.items()}
    return judge_prompt(fixed_turns(file, variant_name, "", View()), variant.item.render(shown), variant, {})


_LINE: Final = "\n"
_BETWEEN: Final = "\n\n"


def previous_answers(steps: list[Step] | tuple[Step, ...], answers: Mapping[str, str]) -> str:
    """Return a judge's turn: for each step, a line with the step's opening and the judge's answer."""
    return "\n".join(f"{step.opening} {' '.join(answers[step.name].split())}".lstrip() for step in steps)


def _demonstrated(file: PromptFile, variant: Variant, demonstration: Demonstration, view: View) -> dict[str, str]:
    # With AUTO, demonstrations show the same references as with CLOSEST, so only the item's turn can differ. Repeated
    # references are always shown alike.
    auto = ShownReferences.AUTO if file.references.repeat else ShownReferences.CLOSEST
    choice = auto if view.references is ShownReferences.AUTO else view.references
    kept = without_rare(count_references(demonstration.references), view.share)
    shown = shown_references(demonstration.references, kept, demonstration.prediction, file.references, choice)
    references = write_references(shown.counted, file.references, variant.delimiters)
    return {
        "question": neutralise(demonstration.question, variant.delimiters),
        "references": references,
        "answer": references,
        "prediction": without_praise(
            neutralise(demonstration.prediction, variant.delimiters), variant.delimiters, shown.counted.texts
        ),
        "caption": neutralise(demonstration.caption, variant.delimiters) if view.caption else "",
        "problem": "",
    }


CAPTION_SEPARATOR: Final = " / "


def check_judged(item: Item) -> Failure | None:
    """Return a failure if the question is invalid or the prediction contains no letter or digit."""
    failure = check_question(item.question)
    if failure is None and not has_letter_or_digit(item.prediction):
        return Failure(Status.EMPTY_PREDICTION, "prediction: contains no letter or digit to judge")
    return failure


def kind_of_question(item: Item, counted: CountedReferences) -> str:
    """Return the demonstration set for a question: "binary" for a yes-or-no question, otherwise "short" or "long".

    "short" is for a question about an image: the item has captions, or its references are annotators' votes.
    "long" is for a question about a text.
    """
    if is_binary(counted):
        return "binary"
    return "short" if item.captions or counted.votes else "long"


@dataclass(frozen=True, slots=True)
class ShownItem:
    """The turn that shows an item to a judge.

    `masked` is True if `without_praise` removed words from the prediction. `matched_reference` is the index of the
    shown alias, or None if the turn shows several aliases or votes.
    """

    rendered: Rendered
    kind: str
    cut: bool
    masked: bool
    matched_reference: int | None


def show_item(item: Item, file: PromptFile, variant: Variant, view: View) -> ShownItem:
    """Fill an item that passes `check_judged` into a variant's template, and cut long texts."""
    counted = count_references(item.references)
    prediction, prediction_cut = cut_to_words(item.prediction, variant.prediction_words)
    question, question_cut = cut_to_words(item.question, MAX_CHARACTERS)
    described, caption_cut = cut_to_words(CAPTION_SEPARATOR.join(item.captions) if view.caption else "", MAX_WORDS)
    kept = without_rare(counted, view.share)
    references = shown_references(item.references, kept, prediction, file.references, view.references)
    shown = answered = neutralise(prediction, variant.delimiters)
    # "True." and "correct" answer a yes-or-no question, and are not praise there.
    if not is_binary(counted) or leading_verdict(prediction) is None:
        shown = without_praise(answered, variant.delimiters, references.counted.texts, question=question)
    fields = {
        "question": neutralise(question, variant.delimiters),
        "references": write_references(references.counted, file.references, variant.delimiters),
        "prediction": shown,
        "caption": neutralise(described, variant.delimiters),
    }
    return ShownItem(
        rendered=variant.item.render(fields),
        kind=view.kind or kind_of_question(item, counted),
        cut=prediction_cut or question_cut or caption_cut or references.cut,
        masked=shown != answered,
        matched_reference=references.alone,
    )
