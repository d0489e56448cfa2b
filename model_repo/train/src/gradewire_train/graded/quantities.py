"""Draw rows about quantities: numbers with units, and amounts in reports."""

from fractions import Fraction
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, wrapped
from gradewire_train.material import GRADED
from gradewire_train.texts.numbers import digits, in_words
from gradewire_train.texts.wording import question_style

_STATEMENT: Final = "It comes to {}"
_SHARE_WORDS: Final = {(top, bottom): words for top, bottom, words in GRADED["shares"]}
_SHARES: Final = tuple(_SHARE_WORDS)
_SCALES: Final = (("thousand", 3), ("million", 6), ("billion", 9), ("trillion", 12))


def unit(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a value in a different unit: "2500 m" for "2.5 km"; a wrong answer has a different value."""
    question, pair = rng.choice(GRADED["units"])
    (small, _), (large, size) = pair
    halves = rng.randrange(1, 40)
    value = Fraction(halves * size, 2) if size % 2 == 0 else Fraction(halves * size)
    forms = {small: value, large: value / size}
    of, to = (small, large) if rng.random() < 0.5 else (large, small)
    meant = f"{value} {small}"
    drawn = rng.random()
    if right:
        shown = (to if drawn < 0.7 else of, forms[to] if drawn < 0.7 else forms[of])
        said = value
    elif drawn < 0.5:
        shown = (to, forms[of])
        said = forms[of] * (size if to == large else 1)
    else:
        factor = rng.choice((Fraction(1, 10), Fraction(10), Fraction(2), Fraction(3, 2)))
        shown, said = (to, forms[to] * factor), value * factor
    spelled = f"{_number(rng, shown[1])} {shown[0]}"
    return _row(rng, question, f"{_plain(forms[of])} {of}", spelled, meant, f"{said} {small}")


def share(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a share in another format: "1 in 4" or "0.25" for "25 %"; a wrong answer changes the share."""
    top, bottom = rng.choice(_SHARES)
    other = rng.choice([each for each in _SHARES if each != (top, bottom)])
    forms = _share_forms(top, bottom)
    reference, meant = rng.choice(forms), f"{top}/{bottom}"
    if right:
        return _row(rng, rng.choice(GRADED["share_questions"]), reference, rng.choice(forms), meant, meant)
    percent = top * 100 // bottom
    wrong = [
        rng.choice(_share_forms(*other)),
        rng.choice(_share_forms(*other)),
        str(percent + 100),
        f"{percent / 1000:g}",
        f"{percent}‰",
        f"1 in {percent}" if percent not in {2, bottom} else "none",
    ]
    return _row(rng, rng.choice(GRADED["share_questions"]), reference, rng.choice(wrong), meant, "other")


def magnitude(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a large number: "1,200,000" for "1.2 million"; a wrong answer changes the power of ten or a digit."""
    name, power = rng.choice(_SCALES[1:])
    tenths = rng.randrange(11, 999)
    value = tenths * 10 ** (power - 1)
    lower = dict(_SCALES)
    below = next(each for each, ten in _SCALES if ten == power - 3)
    forms = [f"{tenths / 10:g} {name}", f"{digits(tenths * 100)} {below}", digits(value), f"{tenths / 10:g}e{power}"]
    if power < 12:
        forms.append(str(value))
    reference, answer = rng.choice(forms[:3]), rng.choice(forms)
    if right:
        return _row(rng, rng.choice(GRADED["number_questions"]), reference, answer, str(value), str(value))
    drawn = rng.random()
    if drawn < 0.5:
        another = rng.choice([each for each in lower if each != name])
        said = f"{tenths / 10:g} {another}"
    else:
        changed = tenths + rng.choice((-10, 10, 100, 1, 30)) if tenths > 120 else tenths + rng.choice((7, 10, 100))
        said = rng.choice([f"{changed / 10:g} {name}", digits(changed * 10 ** (power - 1))])
    return _row(rng, rng.choice(GRADED["number_questions"]), reference, said, str(value), "other")


def digit(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a number of three to nine digits, formatted or rounded; a wrong answer changes, adds or drops a digit."""
    length = rng.randrange(3, 10)
    value = rng.randrange(10 ** (length - 1), 10**length)
    text = str(value)
    if right:
        forms = [digits(value), text, f"exactly {text}", text.replace(text, f"{value:_}".replace("_", " "))]
        if length >= 6:
            forms.append(f"about {digits(round(value, 3 - length))}")
        return _row(rng, rng.choice(GRADED["number_questions"]), digits(value), rng.choice(forms), text, text)
    at = rng.randrange(min(length, 3))
    other = rng.choice([each for each in range(1, 10) if str(each) != text[at]])
    said = f"{text[:at]}{other}{text[at + 1 :]}"
    if rng.random() < 0.3:
        said = text[:-1] if length > 3 else f"{text}0"
    return _row(rng, rng.choice(GRADED["number_questions"]), digits(value), digits(int(said)), text, said)


def bound(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a limit: "over 40" for "more than 40"; a wrong answer is "less than 40", or names another number."""
    own = rng.randrange(len(GRADED["bounds"]))
    number = rng.randrange(2, 500)
    reference, answer = (each.format(number) for each in _two(rng, GRADED["bounds"][own]))
    meant = f"{own} {number}"
    said = meant
    if not right:
        opposite = {0: (1, 3), 1: (0, 2), 2: (1, 3), 3: (0, 2)}[own]
        other = own if rng.random() < 0.35 else opposite[rng.randrange(2)]
        changed = number + rng.randrange(5, 60) if other == own else number
        answer = GRADED["bounds"][other][rng.randrange(4)].format(changed)
        said = f"{other} {changed}"
    return _row(rng, rng.choice(GRADED["bound_questions"]), reference, answer, meant, said)


def _two(rng: PartRandom, forms: tuple[str, ...]) -> tuple[str, str]:
    # Draw indices instead of texts, because both parts need all of these few forms.
    first, second = rng.randrange(len(forms)), rng.randrange(len(forms))
    return forms[first], forms[second]


def _share_forms(top: int, bottom: int) -> list[str]:
    percent = top * 100 // bottom
    parts = {"percent": percent, "top": top, "bottom": bottom, "share": percent / 100, "spelled": in_words(percent)}
    return [form.format(words=_SHARE_WORDS[top, bottom], **parts) for form in GRADED["share_forms"]]


def _plain(value: Fraction) -> str:
    return f"{float(value):.6g}" if value.denominator != 1 or value < 10_000 else digits(int(value))


def _number(rng: PartRandom, value: Fraction) -> str:
    if value.denominator == 1 and value < 100 and rng.random() < 0.4:
        return in_words(int(value))
    return _plain(value)


def _row(  # noqa: PLR0913, PLR0917 - all fields of a row
    rng: PartRandom, question: str, reference: str, answer: str, meant: str, said: str
) -> Drawn:
    return Drawn(question_style(rng, question), (reference,), wrapped(rng, _STATEMENT, answer), meant, said)


def ledger(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw an answer with the requested amount and other amounts; a wrong answer replaces the requested amount."""
    item, second = rng.sample(GRADED["ledger_items"], 2)
    firm, rival = rng.sample(GRADED["companies"], 2)
    year = rng.randrange(2005, 2025)
    tenths = rng.randrange(100, 90_000)
    near = [tenths + step for step in (rng.randrange(10, 400), -rng.randrange(5, 95), 10 * tenths - tenths)]
    others = [*near, *(rng.randrange(100, 90_000) for _ in range(3))]
    others = [each for each in others if each not in {tenths, 10 * tenths} and each > 0]
    rng.shuffle(others)
    said = tenths if right else others.pop()
    if not right and rng.random() < 0.4:
        others[0] = tenths
    blanks = {"item": item, "item2": second, "firm": firm, "firm2": rival, "year": year}
    lead = rng.choice(GRADED["ledger_leads"]).format(said=_money(rng, said), **blanks)
    asides = [
        rng.choice(GRADED["ledger_asides"]).format(other=_money(rng, other), **blanks)
        for other in others[: rng.randrange(1, 3)]
    ]
    steps = rng.sample(GRADED["ledger_steps"], rng.randrange(0, 3)) if rng.random() < 0.7 else []
    body = [lead[:1].upper() + lead[1:], *(asides if rng.random() < 0.8 else ()), *steps]
    if rng.random() < 0.3:
        body = [*steps, body[0], *asides]
    reference = _money(rng, tenths)
    question = rng.choice(GRADED["ledger_questions"]).format(**blanks)
    return Drawn(question_style(rng, question), (reference,), " ".join(body), f"{tenths}", f"{said}")


def growth(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a change: "decreased 4.2 percent" for "fell by 4.2 %"; a wrong answer differs in direction or number."""
    item, firm = rng.choice(GRADED["ledger_items"]), rng.choice(GRADED["companies"])
    tenths, up = rng.randrange(3, 600), rng.random() < 0.5
    other, other_up = tenths, up
    if not right:
        if rng.random() < 0.5:
            other_up = not up
        else:
            other = tenths + rng.randrange(5, 300)
    reference = _change(rng, tenths, up=up)
    says = f"The {item} of {firm} {_change(rng, other, up=other_up)}."
    if rng.random() < 0.5:
        says = " ".join([says, *rng.sample(GRADED["ledger_steps"], rng.randrange(1, 3))])
    question = question_style(rng, f"how did the {item} of {firm} change")
    return Drawn(question, (reference,), says, f"{tenths} {up}", f"{other} {other_up}")


def _change(rng: PartRandom, tenths: int, *, up: bool) -> str:
    return any_of(rng, GRADED["growths" if up else "declines"]).format(f"{tenths / 10:g}")


def _money(rng: PartRandom, tenths: int) -> str:
    """Write an amount in dollars as reports do. `tenths` is the amount in tenths of a million dollars."""
    forms = GRADED["amounts"]
    if tenths >= 10_000:
        forms = (*forms, "${billions:.4g} billion" if tenths % 10 == 0 else "${billions:.4f} billion")
    return any_of(rng, forms).format(millions=tenths / 10, dollars=tenths * 100_000, billions=tenths / 10_000)
