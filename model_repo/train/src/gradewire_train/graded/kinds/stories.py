"""Rows about short stories, and answers that evade the question."""

from typing import Final

from gradewire_train.graded.material import PartRandom, words
from gradewire_train.graded.wording import Drawn, any_of, references, remarks
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.values.names import person_name
from gradewire_train.texts.wording import answer_style, capitalised, filled, question_style, sentence

_WHY: Final = (
    "why did it happen",
    "what was the reason",
    "how come",
    "what caused this",
    "why was that",
    "for what reason",
    "what led to it",
    "explain why",
)
_RISES: Final = ("{} increases", "{} goes up", "{} rises", "{} gets higher", "{} grows", "there is an increase in {}")
_FALLS: Final = ("{} decreases", "{} goes down", "{} falls", "{} gets lower", "{} drops", "there is a decrease in {}")
_EFFECT: Final = (
    "what happens to {}",
    "how does {} change",
    "what is the effect on {}",
    "in which direction does {} move",
)
_PROPOSALS: Final = (
    "How about we {} tonight?",
    "Do you want to {} with us?",
    "Shall we {} on Sunday?",
    "Let's {} tomorrow.",
    "We could {} after work.",
    "Would you like to {}?",
)
_AGREES: Final = (
    "Sounds great, let us {}.",
    "Yes, I would love to {}.",
    "Good idea, I am ready to {}.",
    "Sure, we can {}.",
    "Gladly! I have wanted to {} for weeks.",
    "I am in. When do we {}?",
)
_DECLINES: Final = (
    "No thanks, I would rather not {}.",
    "I can't {}, I have to work.",
    "Sorry, I do not feel like it; {} without me.",
    "I am afraid I cannot {} this time.",
    "Not today. Another time we can {}.",
    "I'd love to {}, but I am ill.",
)

_UNSURE = (
    "I am not quite sure, but I believe it is {}.",
    "I cannot give you more than this: {}.",
    "I do not know much about it; it should be {}.",
    "Nobody has told me for certain, yet it is {}.",
    "Sorry for the delay. It is {}.",
    "I'm no expert, but the answer is {}.",
    "There is not much information, though all of it says {}.",
    "As far as anybody can tell: {}.",
)
_ALIASES = ("{}, also known as {}", "{} ({})", "{}, or {} as some write it", "{}, in other words {}")


def bound_to(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Who did it, answered by a passage in which several people did several things; wrong: it says so of another."""
    count = rng.randrange(2, 4)
    people = [person_name(rng).usual for _ in range(count)]
    deeds = rng.sample(words("jobs_done"), count)
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
    """Who did what to whom, active and passive; wrong: the two have changed places."""
    active, passive = rng.choice(words("verbs_between")).split("|")
    first, second = person_name(rng).usual, person_name(rng).usual
    if first.split()[-1] == second.split()[-1]:
        return None
    same = (f"{first} {active} {second}", f"{second} {passive} {first}")
    other = (f"{second} {active} {first}", f"{first} {passive} {second}")
    reference = same[rng.randrange(2)]
    answer = (same if right else other)[rng.randrange(2)]
    question = rng.choice(
        ("what happened between {} and {}", "how are {} and {} connected", "what is said of {} and {}")
    )
    asked = question_style(rng, question.format(*((first, second) if rng.random() < 0.5 else (second, first))))
    says = f"{answer}." if rng.random() < 0.7 else f"{answer}. {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return Drawn(asked, (f"{reference}.",), says, same[0], same[0] if right else other[0])


def compared(rng: PartRandom, *, right: bool) -> Drawn:
    """Which of two is more: said of the one, or the opposite of the other; wrong: the other way round."""
    more, less = rng.choice(words("comparatives")).split("|")
    first, second = rng.sample(words("companies"), 2)
    same = (f"{first} is {more} than {second}", f"{second} is {less} than {first}")
    other = (f"{second} is {more} than {first}", f"{first} is {less} than {second}")
    answer = (same if right else other)[rng.randrange(2)]
    says = f"{answer}." if rng.random() < 0.7 else f"{answer}. {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    reference = f"{same[rng.randrange(2)]}." if rng.random() < 0.6 else f"{first} is {more}."
    question = question_style(rng, f"which is {more}, {first} or {second}")
    return Drawn(question, (reference,), says, same[0], same[0] if right else other[0])


def reason(rng: PartRandom, *, right: bool) -> Drawn:
    """Why something happened, told in one or two sentences; wrong: another reason, or the outcome alone."""
    why, another = rng.sample(words("reasons"), 2)
    outcome = rng.choice(words("outcomes"))
    cause = why if right else another
    forms = (
        f"{outcome} because {cause}.",
        f"Because {cause}.",
        f"{cause[:1].upper()}{cause[1:]}, so {outcome[:1].lower()}{outcome[1:]}.",
        f"The reason was that {cause}.",
        f"since {cause}",
        f"It was due to the fact that {cause}.",
    )
    answer = forms[rng.randrange(len(forms))]
    if not right and rng.random() < 0.2:
        answer = f"{outcome}."
    if rng.random() < 0.2:
        answer = f"{answer} {' '.join(remarks(rng, 2))}"
    reference = why if rng.random() < 0.5 else f"{outcome} because {why}."
    question = f"{outcome}. {question_style(rng, rng.choice(_WHY))}"
    return Drawn(question, (reference,), answer, why, cause if why in answer or cause in answer.lower() else "none")


def trend(rng: PartRandom, *, right: bool) -> Drawn:
    """Which way an amount goes, in other words; wrong: the other way, or that it does not change."""
    amount = rng.choice(words("moving_amounts"))
    up = rng.random() < 0.5
    own, against = (_RISES, _FALLS) if up else (_FALLS, _RISES)
    if right:
        answer, said = own[rng.randrange(len(own))], up
    elif rng.random() < 0.25:
        answer, said = ("{} stays the same", "{} does not change", "nothing happens to {}")[rng.randrange(3)], None
    else:
        answer, said = against[rng.randrange(len(against))], not up
    question = question_style(rng, _EFFECT[rng.randrange(len(_EFFECT))].format(amount))
    shown = "it" if rng.random() < 0.4 else amount
    text = answer_style(rng, answer.format(shown))
    if rng.random() < 0.25:
        text = f"{text} {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return Drawn(question, (own[rng.randrange(len(own))].format(amount),), text, str(up), str(said))


def reply(rng: PartRandom, *, right: bool) -> Drawn:
    """A reply in a dialogue that agrees or declines; wrong: the opposite, or about something else."""
    plan, another = rng.sample(words("plans"), 2)
    agrees = rng.random() < 0.5
    own, against = (_AGREES, _DECLINES) if agrees else (_DECLINES, _AGREES)
    proposal = _PROPOSALS[rng.randrange(len(_PROPOSALS))].format(plan)
    reference = own[rng.randrange(len(own))].format(plan)
    if right:
        answer, said = own[rng.randrange(len(own))].format(plan), f"{agrees} {plan}"
    elif rng.random() < 0.7:
        answer, said = against[rng.randrange(len(against))].format(plan), f"{not agrees} {plan}"
    else:
        answer, said = own[rng.randrange(len(own))].format(another), f"{agrees} {another}"
    first, second = ("A: ", "B: ") if rng.random() < 0.3 else ("", "")
    return Drawn(f"{first}{proposal}", (reference,), f"{second}{answer}", f"{agrees} {plan}", said)


def denied(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A denial, "it is not X": wrong where X is the reference; right where the reference is given instead."""
    if right:
        return corrected(rng, draw, right=True)
    said = any_of(rng, (draw.answer, *draw.same[:1]))
    return _row(rng, draw, filled(rng.choice(words("denials")), said), right=False)


def corrected(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A correction, "not A but B": right where B is the reference."""
    other = any_of(rng, draw.wrong)
    said, against = (draw.answer, other) if right else (other, draw.answer)
    return _row(rng, draw, capitalised(rng.choice(words("corrections")).format(said=said, wrong=against)), right=right)


def hedged(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A list, "A or B", decides nothing; one answer that is given with doubts, or with its other name, is one."""
    if right:
        if draw.same and rng.random() < 0.3:
            both = _ALIASES[rng.randrange(len(_ALIASES))].format(draw.answer, draw.same[0])
            return _row(rng, draw, filled(sentence(rng, draw.statement), both), right=True)
        return _row(rng, draw, filled(rng.choice(_UNSURE), draw.answer), right=True)
    pair = [draw.answer, any_of(rng, draw.wrong)]
    rng.shuffle(pair)
    return _row(rng, draw, capitalised(rng.choice(words("hedges")).format(*pair)), right=False)


def refused(rng: PartRandom, draw: Draw, *, right: bool) -> Drawn:
    """A refusal, also one that names the reference or another value; doubts before an answer are none."""
    if right:
        return _row(rng, draw, filled(rng.choice(_UNSURE), draw.answer), right=True)
    drawn = rng.random()
    if drawn < 0.5:
        text = rng.choice(words("refusals"))
    else:
        named = draw.answer if drawn < 0.7 else any_of(rng, draw.wrong)
        text = rng.choice(words("refused_figures")).format(named)
    if rng.random() < 0.4:
        text = f"{text} {' '.join(remarks(rng, rng.randrange(1, 3)))}"
    return _row(rng, draw, text, right=False)


def off_topic(rng: PartRandom, draw: Draw, elsewhere: Draw, *, right: bool) -> Drawn:
    """The question repeated, praise alone, or the answer to another question; right: praise before the answer."""
    praise = rng.choice(words("praise")[:10])
    stated = filled(f"{draw.statement}." if draw.statement else sentence(rng, ""), draw.answer)
    if right:
        return _row(rng, draw, f"{praise} {stated}", right=True)
    drawn = rng.randrange(5)
    asked = capitalised(draw.question)
    text = (
        f"{asked}?",
        f"You want to know: {draw.question}.",
        f"{praise} {rng.choice(words('praise'))}",
        filled(f"{elsewhere.statement}." if elsewhere.statement else "It is {}.", elsewhere.answer),
        f"{praise} {' '.join(remarks(rng, 3))}",
    )[drawn]
    return _row(rng, draw, text, right=False)


def _row(rng: PartRandom, draw: Draw, prediction: str, *, right: bool) -> Drawn:
    asked = question_style(rng, draw.question)
    return Drawn(asked, references(rng, draw), prediction, "right", "right" if right else "none")
