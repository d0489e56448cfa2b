"""Figures of companies in long answers: the right figure stands beside others of other years, items and companies."""

from typing import Final

from gradewire_train.graded.data import words
from gradewire_train.graded.part import PartRandom
from gradewire_train.graded.row import Drawn
from gradewire_train.texts.style import question_style

_ASKED: Final = (
    "what was the {item} of {firm} in {year}",
    "how much {item} did {firm} report for {year}",
    "what {item} does {firm} state for fiscal {year}",
    "{firm} {item} {year}",
    "in millions of dollars, what is the {year} {item} of {firm}",
    "give the {item} of {firm} for the year {year}",
    "what did the {item} of {firm} amount to in FY{year}",
    "how high was {firm}'s {item} in {year}",
)
_LEADS: Final = (
    "According to the annual report, the {item} of {firm} in {year} was {said}.",
    "{firm} reported {item} of {said} for fiscal {year}.",
    "For {year}, {firm} states {item} of {said}.",
    "The {item} amounted to {said} in {year}.",
    "In FY{year} the {item} of {firm} came to {said}.",
    "Based on the statement of operations, {item} was {said} for {year}.",
    "{item} for {year}: {said}.",
    "The answer is {said}, as the table on the {item} shows.",
)
_ASIDES: Final = (
    "In the year before, it had been {other}.",
    "Analysts had expected {other}.",
    "By comparison, {item2} stood at {other}.",
    "{firm2} reported {other} in the same period.",
    "The figure for the following year was {other}.",
    "The change from {other} is due to higher prices.",
    "It includes {other} from discontinued operations.",
    "Together with {item2} of {other}, this gives a mixed picture.",
)
_STEPS: Final = (
    "To find it, we look at the consolidated statements.",
    "All amounts are in millions unless stated otherwise.",
    "The figures are audited.",
    "Rounding differences may occur.",
    "The fiscal year ends in September.",
    "This follows from the table in the notes.",
    "Currency effects are excluded.",
    "The company changed its reporting segments during the period.",
)


def ledger(rng: PartRandom, *, right: bool) -> Drawn:
    """The figure that is asked for, or another one in its place, in an answer that names further figures."""
    item, second = rng.sample(words("ledger_items"), 2)
    firm, rival = rng.sample(words("companies"), 2)
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
    lead = rng.choice(_LEADS).format(said=_money(rng, said), **blanks)
    asides = [rng.choice(_ASIDES).format(other=_money(rng, other), **blanks) for other in others[: rng.randrange(1, 3)]]
    steps = rng.sample(_STEPS, rng.randrange(0, 3)) if rng.random() < 0.7 else []
    body = [lead[:1].upper() + lead[1:], *(asides if rng.random() < 0.8 else ()), *steps]
    if rng.random() < 0.3:
        body = [*steps, body[0], *asides]
    reference = _money(rng, tenths)
    question = rng.choice(_ASKED).format(**blanks)
    return Drawn(question_style(rng, question), (reference,), " ".join(body), f"{tenths}", f"{said}")


def growth(rng: PartRandom, *, right: bool) -> Drawn:
    """A change in percent with its direction: "fell by 4.2 %" as "decreased 4.2 percent"; wrong: a rise, or 5.1 %."""
    item, firm = rng.choice(words("ledger_items")), rng.choice(words("companies"))
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
        says = f"{says} {' '.join(rng.sample(_STEPS, rng.randrange(1, 3)))}"
    question = question_style(rng, f"how did the {item} of {firm} change")
    return Drawn(question, (reference,), says, f"{tenths} {up}", f"{other} {other_up}")


def _change(rng: PartRandom, tenths: int, *, up: bool) -> str:
    percent = f"{tenths / 10:g}"
    sign = (
        ("rose by {}%", "increased {} percent", "went up by {}%", "grew by {} per cent", "was up {}%"),
        ("fell by {}%", "decreased {} percent", "went down by {}%", "shrank by {} per cent", "was down {}%"),
    )
    return sign[0 if up else 1][rng.randrange(5)].format(percent)


def _money(rng: PartRandom, tenths: int) -> str:
    """An amount of `tenths` tenths of a million, in one of the forms of reports."""
    forms = [
        f"${tenths / 10:,.1f} million",
        f"${tenths * 100_000:,}",
        f"{tenths / 10:,.1f} million dollars",
        f"USD {tenths / 10:,.1f} million",
        f"${tenths / 10:,.1f}M",
    ]
    if tenths >= 10_000:
        forms.append(f"${tenths / 10_000:.4g} billion" if tenths % 10 == 0 else f"${tenths / 10_000:.4f} billion")
    return forms[rng.randrange(len(forms))]
