"""Draw statements that are turned round by a word: "not", "some", "unless", or the last step of a calculation."""

from collections.abc import Callable, Mapping
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, another_of, any_of, completed, lead, surrounded, two_names
from gradewire_train.material import FLIPS
from gradewire_train.texts.names import person_name
from gradewire_train.texts.wording import capitalised, question_style

_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "every": ("none", "mixed", "most", "few", "some"),
    "none": ("every", "mixed", "most", "few", "some"),
    "mixed": ("every", "none"),
    "most": ("none", "few", "every"),
    "few": ("most", "every", "none"),
    "some": ("none",),
    "both": ("neither", "single"),
    "neither": ("both", "single"),
    "single": ("both", "neither"),
}
"""Meanings of quantities, each with those that are wrong for it. Those that neither hold nor fail are left out."""
_RULES: Final = ("if", "if", "unless", "unless", "always", "never")


def reported(rng: PartRandom, statement: str) -> str:
    """Return a statement as a sentence, alone or after a few words, and sometimes among filler sentences."""
    return surrounded(rng, capitalised(lead(rng).format(statement)))


def negated(rng: PartRandom, *, right: bool) -> Drawn:
    """Say that something is so or is not so, in other words than the reference; a wrong answer says the opposite."""
    holds = rng.random() < 0.5
    said = holds if right else not holds
    drawn = rng.random()
    if drawn < 0.12:
        return _negated_elsewhere(rng, holds=holds, said=said)
    name = "deed" if drawn < 0.5 else "habit" if drawn < 0.78 else "feature"
    texts = _fillers(rng, name)
    pairs = FLIPS[f"{name}_pairs"]
    first = rng.choice(pairs)
    second = another_of(rng, pairs, first)
    question = question_style(rng, completed(rng.choice(FLIPS[f"{name}_questions"]), **texts))
    reference = capitalised(completed(first[not holds], **texts)) + "."
    answer = reported(rng, completed(second[not said], **texts))
    return Drawn(question, (reference,), answer, str(holds), str(said))


def _fillers(rng: PartRandom, name: str) -> dict[str, str]:
    """Return the texts for the blanks of statements about a deed, a habit or a feature."""
    if name == "feature":
        part = rng.choice(FLIPS["features"])
        return {"thing": rng.choice(FLIPS["feature_things"]), "part": part, "bare": part.partition(" ")[2]}
    who = person_name(rng).usual
    if name == "deed":
        past, base, ing, part = rng.choice(FLIPS["deeds"]).split("|")
        return {"who": who, "past": past, "base": base, "ing": ing, "part": part}
    does, base, ing = rng.choice(FLIPS["habits"]).split("|")
    return {"who": who, "does": does, "base": base, "ing": ing}


def _negated_elsewhere(rng: PartRandom, *, holds: bool, said: bool) -> Drawn:
    question, *forms = rng.choice(FLIPS["negations_elsewhere"])
    who = person_name(rng).first
    own, against = (forms[:2], forms[2:]) if holds else (forms[2:], forms[:2])
    reference = any_of(rng, own)
    answer = any_of(rng, own if said == holds else against)
    texts = [completed(text, who=who) for text in (question, reference, answer)]
    return Drawn(texts[0], (texts[1],), texts[2], str(holds), str(said))


def affirmed(rng: PartRandom, *, right: bool) -> Drawn:
    """Answer a question for yes or no by a statement that implies the answer; a wrong one implies the opposite."""
    claims: tuple[Callable[[PartRandom], tuple[str, str, str]], ...] = (
        _role_claim, _counted_claim, _dated_claim, _placed_claim, _deed_claim, _habit_claim,
    )  # fmt: skip
    question, *implied = claims[rng.randrange(len(claims))](rng)
    holds = rng.random() < 0.5
    said = holds if right else not holds
    reference: str = any_of(rng, FLIPS["yes_reasons" if holds else "no_reasons"])
    if rng.random() < 0.2:
        reference = f"{capitalised(reference).rstrip('.')}. {implied[not holds]}"
    answer = surrounded(rng, implied[not said])
    return Drawn(question_style(rng, question), (reference,), answer, str(holds), str(said))


def numbers_compared(rng: PartRandom, *, right: bool) -> Drawn:
    """Answer which of two is more or less by the numbers of both; a wrong answer exchanges the numbers."""
    more, less, statement, span = rng.choice(FLIPS["numbers_compared"])
    first, second = two_names(rng)
    low, high = sorted(rng.sample(range(*map(int, span.split("-"))), 2))
    meant, other = (first, second) if rng.random() < 0.5 else (second, first)
    asked_more = rng.random() < 0.5
    # The reference has the high number if the question asks for more and the answer is right, or if neither holds.
    own, theirs = (high, low) if asked_more == right else (low, high)
    named = {meant: str(own), other: str(theirs)}
    pair = [first, second]
    rng.shuffle(pair)
    said = completed(statement, a=pair[0], b=pair[1], x=named[pair[0]], y=named[pair[1]])
    question = question_style(rng, completed(more if asked_more else less, a=first, b=second))
    return Drawn(question, (meant,), reported(rng, said), meant, meant if right else other)


def _role_claim(rng: PartRandom) -> tuple[str, str, str]:
    forms = rng.choice(FLIPS["converses_of_persons"])
    first, second = two_names(rng)
    thing = rng.choice(FLIPS["feature_things"])
    asked = completed(forms[rng.randrange(2)], a=first, b=second, thing=thing)
    form = forms[rng.randrange(2)]
    start = lead(rng)
    texts = [
        capitalised(start.format(completed(form, a=a, b=b, thing=thing))) for a, b in ((first, second), (second, first))
    ]
    return rng.choice(FLIPS["asked_statements"]).format(asked), texts[0], texts[1]


def _counted_claim(rng: PartRandom) -> tuple[str, str, str]:
    more, fewer, statement = rng.choice(FLIPS["counted_claims"])
    limit, things = rng.randrange(10, 90), rng.choice(FLIPS["quantified"]["things"])
    above, below = limit + rng.randrange(1, 30), limit - rng.randrange(1, 9)
    texts = [completed(statement, x=str(value), things=things) for value in (above, below)]
    if rng.random() < 0.5:
        return completed(more, n=str(limit), things=things), texts[0], texts[1]
    return completed(fewer, n=str(limit), things=things), texts[1], texts[0]


def _dated_claim(rng: PartRandom) -> tuple[str, str, str]:
    before, after, statement = rng.choice(FLIPS["dated_claims"])
    first, second = two_names(rng)
    early = rng.randrange(1850, 2000)
    late = early + rng.randrange(1, 24)
    texts = [
        capitalised(completed(statement, a=first, b=second, x=str(x), y=str(y)))
        for x, y in ((early, late), (late, early))
    ]
    if rng.random() < 0.5:
        return completed(before, a=first, b=second), texts[0], texts[1]
    return completed(after, a=first, b=second), texts[1], texts[0]


def _placed_claim(rng: PartRandom) -> tuple[str, str, str]:
    question, statement = rng.choice(FLIPS["placed_claims"])
    place, other = rng.sample(FLIPS["towns"], 2)
    who = person_name(rng).usual
    texts = [completed(statement, a=who, x=each) for each in (place, other)]
    return completed(question, a=who, place=place), texts[0], texts[1]


def _deed_claim(rng: PartRandom) -> tuple[str, str, str]:
    texts = _fillers(rng, "deed")
    start, pair = lead(rng), rng.choice(FLIPS["deed_pairs"])
    said = [capitalised(start.format(completed(each, **texts))) for each in pair]
    return completed("did {who} {base}", **texts), said[0], said[1]


def _habit_claim(rng: PartRandom) -> tuple[str, str, str]:
    texts = _fillers(rng, "habit")
    start, pair = lead(rng), rng.choice(FLIPS["habit_pairs"])
    said = [capitalised(start.format(completed(each, **texts))) for each in pair]
    return completed("does {who} {base}", **texts), said[0], said[1]


def quantified(rng: PartRandom, *, right: bool) -> Drawn:
    """Say how many of a group have a property: all, none, some, most, few, both; a wrong answer says another amount."""
    words = FLIPS["quantified"]
    meant = any_of(rng, tuple(_OTHERS))
    said = meant if right else any_of(rng, _OTHERS[meant])
    several, one = rng.choice(words["properties"]).split("|")
    count = rng.randrange(20, 60)
    texts = {
        "things": rng.choice(words["things"]), "be": several, "bes": one, "n": str(count),
        "many": str(rng.randrange(count * 3 // 5 + 1, count * 9 // 10 + 1)), "few": "2",
    }  # fmt: skip
    question = question_style(rng, completed(rng.choice(words["questions"]), **texts))
    form = rng.choice(words[meant])
    reference = capitalised(completed(form, **texts)) + "."
    answer = reported(rng, completed(another_of(rng, words[said], form), **texts))
    return Drawn(question, (reference,), answer, meant, said)


def conditional(rng: PartRandom, *, right: bool) -> Drawn:
    """State a rule with its condition; a wrong answer reverses, adds or removes the condition."""
    rule = rng.choice(FLIPS["conditional"]["rules"])
    meant = any_of(rng, _RULES)
    said = meant if right else any_of(rng, [each for each in _RULES if each != meant])
    form = rng.choice(_rule_forms(meant))
    reference = _ruled(rule, meant, form)
    if meant == "always" and rng.random() < 0.4:
        # A reference without a condition holds in any case.
        reference = rule[0]
    answer = reported(rng, _ruled(rule, said, another_of(rng, _rule_forms(said), form)))
    return Drawn(question_style(rng, rule[4]), (f"{capitalised(reference)}.",), answer, meant, said)


def _rule_forms(meaning: str) -> tuple[str, ...]:
    forms: tuple[str, ...] = FLIPS["conditional"]["if_forms" if meaning in {"if", "unless"} else f"{meaning}_forms"]
    return forms


def _ruled(rule: tuple[str, ...], meaning: str, form: str) -> str:
    yes, no, condition, opposite = rule[:4]
    if meaning == "unless":
        condition, opposite = opposite, condition
    return completed(form, yes=yes, no=no, cond=condition, anti=opposite)


def worked(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Solve a word problem step by step; a wrong answer slips, stops a step early, or goes a step too far."""
    start, less, more, asked = rng.choice(FLIPS["worked"]["minus"])
    groups, each = rng.randrange(3, 13), rng.randrange(4, 21)
    lost, added = rng.randrange(2, 20), rng.randrange(2, 20)
    if lost in {added, groups, each} or lost >= groups * each:
        return None
    long = rng.random() < 0.5
    texts = {"n": str(groups), "k": str(each), "m": str(lost), "p": str(added)}
    story = " ".join([start, less, more] if long else [start, less])
    question = " ".join([completed(story, **texts), question_style(rng, asked)])
    changes = [-lost, added] if long else [-lost]
    drawn = 1.0 if right else rng.random()
    if drawn < 0.45:
        changes = changes[:1] if long else [*changes, added]
    slip = _slip(rng) if 0.45 <= drawn < 0.9 else 0
    at = rng.randrange(len(changes) + 1)
    signs = ("x", "*", "\N{MULTIPLICATION SIGN}")
    total = groups * each + (slip if at == 0 else 0)
    steps = [(groups, any_of(rng, signs), each, total)]
    for number, change in enumerate(changes, start=1):
        before, total = total, total + change + (slip if at == number else 0)
        steps.append((before, "-" if change < 0 else "+", abs(change), total))
    form = rng.choice(FLIPS["worked"]["steps"])
    shown = [completed(form, a=str(a), sign=sign, b=str(b), c=str(c)) for a, sign, b, c in steps]
    ends = drawn >= 0.9 and not right
    concluded = steps[-2][3] if ends else total
    joint = any_of(rng, (". ", "\n", ", ", "; "))
    text = capitalised(joint.join(shown))
    if ends or rng.random() < 0.7:
        text = f"{text}{'' if text.endswith('.') else '.'} {rng.choice(FLIPS['worked']['ends']).format(concluded)}"
    wanted = groups * each - lost + (added if long else 0)
    if (concluded == wanted) != right:
        return None
    return Drawn(question, (str(wanted),), surrounded(rng, text), str(wanted), str(concluded))


def _slip(rng: PartRandom) -> int:
    return (-10, -2, -1, 1, 2, 10)[rng.randrange(6)]
