"""Draw rows about short stories, replies, claims and science lessons."""

from collections.abc import Mapping
from typing import Any

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, remarks
from gradewire_train.material import GRADED
from gradewire_train.texts.names import person_name
from gradewire_train.texts.wording import answer_style, capitalised, misspelt, question_style


def bound_to(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Ask who did something, and answer with several persons and deeds; a wrong answer swaps two persons."""
    count = rng.randrange(2, 4)
    people = [person_name(rng).usual for _ in range(count)]
    deeds = rng.sample(GRADED["jobs_done"], count)
    if len({name.split()[-1] for name in people}) < count:
        return None
    pairs = list(zip(people, deeds, strict=True))
    asked = deeds[0]
    if not right:
        pairs[0], pairs[1] = (people[0], deeds[1]), (people[1], deeds[0])
    rng.shuffle(pairs)
    says = [f"{who} {deed}." for who, deed in pairs]
    if rng.random() < 0.5:
        says = [*remarks(rng, rng.randrange(1, 4)), *says, *remarks(rng, rng.randrange(1, 4))]
    doer = next(who for who, deed in pairs if deed == asked)
    return Drawn(question_style(rng, f"who {asked}"), (people[0],), " ".join(says), people[0], doer)


def roles(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Say who did what to whom, in active or passive voice; a wrong answer swaps the two persons."""
    active, passive = rng.choice(GRADED["verbs_between"]).split("|")
    first, second = person_name(rng).usual, person_name(rng).usual
    if first.split()[-1] == second.split()[-1]:
        return None
    same = (f"{first} {active} {second}", f"{second} {passive} {first}")
    other = (f"{second} {active} {first}", f"{first} {passive} {second}")
    reference = same[rng.randrange(2)]
    answer = (same if right else other)[rng.randrange(2)]
    question = rng.choice(GRADED["role_questions"])
    asked = question_style(rng, question.format(*((first, second) if rng.random() < 0.5 else (second, first))))
    says = f"{answer}." if rng.random() < 0.7 else f"{answer}. {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return Drawn(asked, (f"{reference}.",), says, same[0], same[0] if right else other[0])


def compared(rng: PartRandom, *, right: bool) -> Drawn:
    """Compare two companies, with "more" or "less"; a wrong answer says the reverse."""
    more, less = rng.choice(GRADED["comparatives"]).split("|")
    first, second = rng.sample(GRADED["companies"], 2)
    same = (f"{first} is {more} than {second}", f"{second} is {less} than {first}")
    other = (f"{second} is {more} than {first}", f"{first} is {less} than {second}")
    answer = (same if right else other)[rng.randrange(2)]
    says = f"{answer}." if rng.random() < 0.7 else f"{answer}. {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    reference = f"{same[rng.randrange(2)]}." if rng.random() < 0.6 else f"{first} is {more}."
    question = question_style(rng, f"which is {more}, {first} or {second}")
    return Drawn(question, (reference,), says, same[0], same[0] if right else other[0])


def reason(rng: PartRandom, *, right: bool) -> Drawn:
    """Explain why something happened; a wrong answer gives another reason, or only the outcome."""
    why, another = rng.sample(GRADED["reasons"], 2)
    outcome = rng.choice(GRADED["outcomes"])
    cause = why if right else another
    parts = {"capitalised": cause[:1].upper() + cause[1:], "lowered": outcome[:1].lower() + outcome[1:]}
    answer = any_of(rng, GRADED["reason_forms"]).format(outcome=outcome, cause=cause, **parts)
    if not right and rng.random() < 0.2:
        answer = f"{outcome}."
    if rng.random() < 0.2:
        answer = f"{answer} {' '.join(remarks(rng, 2))}"
    reference = why if rng.random() < 0.5 else f"{outcome} because {why}."
    question = " ".join([f"{outcome}.", question_style(rng, rng.choice(GRADED["reason_questions"]))])
    return Drawn(question, (reference,), answer, why, cause if why in answer or cause in answer.lower() else "none")


def trend(rng: PartRandom, *, right: bool) -> Drawn:
    """Say in different words how an amount changes; a wrong answer has the opposite direction, or no change."""
    amount = rng.choice(GRADED["moving_amounts"])
    up = rng.random() < 0.5
    own, against = GRADED["rises"], GRADED["falls"]
    if not up:
        own, against = against, own
    if right:
        answer, said = own[rng.randrange(len(own))], up
    elif rng.random() < 0.25:
        answer, said = ("{} stays the same", "{} does not change", "nothing happens to {}")[rng.randrange(3)], None
    else:
        answer, said = against[rng.randrange(len(against))], not up
    question = question_style(rng, any_of(rng, GRADED["trend_questions"]).format(amount))
    shown = "it" if rng.random() < 0.4 else amount
    text = answer_style(rng, answer.format(shown))
    if rng.random() < 0.25:
        text = f"{text} {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return Drawn(question, (own[rng.randrange(len(own))].format(amount),), text, str(up), str(said))


def reply(rng: PartRandom, *, right: bool) -> Drawn:
    """Draw a reply that accepts or declines a plan; a wrong reply says the opposite, or replaces the plan."""
    plan, another = rng.sample(GRADED["plans"], 2)
    agrees = rng.random() < 0.5
    own, against = GRADED["agreements"], GRADED["refused_proposals"]
    if not agrees:
        own, against = against, own
    proposal = any_of(rng, GRADED["proposals"]).format(plan)
    reference = own[rng.randrange(len(own))].format(plan)
    if right:
        answer, said = own[rng.randrange(len(own))].format(plan), f"{agrees} {plan}"
    elif rng.random() < 0.7:
        answer, said = against[rng.randrange(len(against))].format(plan), f"{not agrees} {plan}"
    else:
        answer, said = own[rng.randrange(len(own))].format(another), f"{agrees} {another}"
    first, second = ("A: ", "B: ") if rng.random() < 0.3 else ("", "")
    return Drawn(f"{first}{proposal}", (reference,), f"{second}{answer}", f"{agrees} {plan}", said)


def science(rng: PartRandom, *, right: bool) -> Drawn:
    """Explain science in a pupil's words; a wrong answer has a wrong mechanism, or fits a different question."""
    by_question = {entry["question"]: entry for entry in GRADED["science"]}
    asked = rng.choice(tuple(by_question))
    entry = by_question[asked]
    if right:
        forms = [entry["expected"], *entry["right"], *entry["right"]]
        said = forms[rng.randrange(len(forms))]
    elif rng.random() < 0.8:
        said = entry["wrong"][rng.randrange(len(entry["wrong"]))]
    else:
        other = rng.choice([each for each in by_question if each != asked])
        said = by_question[other]["right"][0]
    expected = (entry["expected"], *entry["right"])
    reference = entry["expected"] if rng.random() < 0.7 else expected[rng.randrange(len(expected))]
    phrase = said[:1].lower() + said[1:] if rng.random() < 0.5 else said
    text = any_of(rng, GRADED["science_leads"]).format(phrase.removeprefix("because "))
    if rng.random() < 0.15:
        text = misspelt(rng, text)
    question = asked if rng.random() < 0.8 else asked.lower().rstrip("?")
    return Drawn(
        question,
        (reference,),
        text if rng.random() < 0.5 else capitalised(text),
        "expected",
        "expected" if right else "other",
    )


def claim(rng: PartRandom, *, right: bool) -> Drawn:
    """Answer "yes" or "no", with or without a reason; a wrong answer says the opposite of the reference."""
    by_question = {entry["question"]: entry for entry in GRADED["claims"]}
    asked = rng.choice(tuple(by_question))
    entry = by_question[asked]
    holds = rng.random() < 0.5
    said = holds if right else not holds
    reference = _claimed(rng, entry, holds=holds, lengthy=True)
    answer = _claimed(rng, entry, holds=said, lengthy=rng.random() < 0.5)
    if rng.random() < 0.2:
        answer = f"{answer} {' '.join(remarks(rng, rng.randrange(1, 4)))}"
    return Drawn(asked, (reference,), answer, str(holds), str(said))


def _claimed(rng: PartRandom, entry: Mapping[str, Any], *, holds: bool, lengthy: bool) -> str:
    word = any_of(rng, GRADED["claimed" if holds else "disclaimed"])
    short, reason = entry["yes" if holds else "no"]
    shape = rng.randrange(4)
    if not lengthy and shape < 2:
        return f"{word}." if shape else word.lower()
    return (f"{word}, {short}.", f"{word}. {reason}", reason, f"{capitalised(short)}.")[shape]
