"""Made-up titles of films, songs and books: with and without article and subtitle, against other titles."""

from random import Random

from gradewire_train.texts.data import word_list
from gradewire_train.texts.draw import Draw

_QUALITIES = word_list("title_qualities")
_THINGS = word_list("title_things")
_OF = word_list("title_of")
_MORE = ("A Love Story", "The Beginning", "The Return", "An American Tale", "The Final Chapter", "Part Two", "Live")
_ASKED = (
    ("what film did {who} direct", "The film that {who} directed is {}"),
    ("which song reached number one that week", "The song at number one was {}"),
    ("what is the name of the book by {who}", "The book by {who} is called {}"),
    ("which play is it from", "It is from the play {}"),
    ("{who} starred in which movie", "{who} starred in {}"),
    ("what is the title of the series", "The series is entitled {}"),
    ("what was their first album", "Their first album was {}"),
    ("which game was released first", "The game released first was {}"),
)
_WRONG = 4
_SHAPES = 5


def title(rng: Random) -> str:
    """A title nobody has to know: "The Silent Harbour"."""
    quality, thing, other = rng.choice(_QUALITIES), rng.choice(_THINGS), rng.choice(_THINGS)
    shape = rng.randrange(_SHAPES)
    if shape == 0:
        return f"The {quality.title()} {thing.title()}"
    if shape == 1:
        return f"{quality.title()} {thing.title()}"
    if shape == 2:
        return f"The {thing.title()} of {rng.choice(_OF).title()}"
    if shape == 3:
        return f"The {thing.title()}'s {other.title()}"
    return f"The {thing.title()} and the {other.title()}"


def titled(rng: Random, who: str) -> Draw:
    """A title: without its article, with a subtitle or in quotation marks; wrong: others that share a word."""
    answer = title(rng)
    question, statement = rng.choice(_ASKED)
    words = answer.split()
    own = [word for word in words if word[:1].isupper() and word not in {"The", "A"}]
    wrong = [title(rng) for _ in range(_WRONG)]
    wrong[0] = answer.replace(own[-1], rng.choice([thing for thing in _THINGS if thing != own[-1].lower()]).title())
    if rng.random() < 0.3:
        wrong[1] = f"{answer} {rng.choice(('2', '3', 'II', 'III'))}"
    same = [answer.removeprefix("The "), f'"{answer}"', answer.lower(), answer.replace(" and ", " & ")]
    looser = [f"{answer}: {rng.choice(_MORE[:2])}", f"{answer} ({rng.randrange(1930, 2024)})"]
    statement = statement.replace("{who}", who)
    return Draw(question.replace("{who}", who), statement, answer, tuple(same), tuple(looser), tuple(wrong))
