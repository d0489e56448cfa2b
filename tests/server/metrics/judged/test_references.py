"""Yes/no questions by rule: never a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.choices import ShownReferences
from gradewire_server.metrics.judged.references import (
    ChosenReferences,
    choose_shown,
    closest,
    count_references,
    is_binary,
    majority,
    rule_verdict,
    without_rare,
    write_references,
)
from gradewire_server.metrics.prompts.neutralise import Delimiters
from gradewire_server.metrics.prompts.prompt_file import ReferenceForm


@pytest.mark.parametrize(
    ("references", "binary", "most"),
    [
        (("yes",), True, True),
        (("No.", "no", "YES"), True, False),
        (("yes", "no"), True, None),
        (("no", "no", "yes", "yes, it is"), True, None),
        (("no", "nope", "yes"), True, False),
        (("yes", "yes", "wood"), True, True),
        (("wood", "wood", "yes"), False, True),
        (("wood",), False, None),
        (("yes, it is",), False, True),
        (("yes", "wood", "wood", "yes", "no"), True, True),
        # Votes are counted without regard to case and marks.
        (("no", "yes", "Yes", "YES."), True, True),
        (("wood", "Yes", "yes"), True, True),
        # What a prediction may not say is no vote either.
        (("yes", "no", "No data", "Certainly!", "Sure"), True, None),
    ],
)
def test_the_majority_of_references(references: tuple[str, ...], binary: bool, most: bool | None) -> None:  # noqa: FBT001
    assert is_binary(count_references(references)) is binary
    assert majority(references) is most


@pytest.mark.parametrize(
    ("references", "prediction", "right"),
    [
        (("yes", "yes", "no"), "Yes, it is.", True),
        (("yes", "yes", "no"), "no", False),
        (("no", "no", "yes"), "there isn't any", True),
        (("no",), "tile", None),
        (("yes", "no"), "yes", None),
        (("wood", "yes"), "yes", None),
        (("no",), "No image was provided, so I cannot tell.", None),
        (("yes",), "Certainly! Looking closely, the answer is no.", None),
    ],
)
def test_the_rule(references: tuple[str, ...], prediction: str, right: bool | None) -> None:  # noqa: FBT001
    assert rule_verdict("Is it?", references, prediction) is right


@pytest.mark.parametrize(
    ("question", "references", "prediction"),
    [
        ("Which band sang Owner of a Lonely Heart?", ("Yes", "Yes (band)"), "Yes, I know: it was Genesis."),
        ("Which band sang Owner of a Lonely Heart?", ("Yes", "yes"), "Yes"),
        ("Who is the villain of the film?", ("No", "Dr. No", "Julius No"), "No, it was Goldfinger"),
    ],
)
def test_the_rule_is_for_questions_that_ask_for_yes_or_no(
    question: str, references: tuple[str, ...], prediction: str
) -> None:
    assert rule_verdict(question, references, prediction) is None


@pytest.mark.parametrize(
    ("references", "prediction", "best"),
    [
        (("Ada", "Ada Lovelace"), "Lovelace was her name", "Ada Lovelace"),
        (("Ada", "Lovelace"), "nobody", "Ada"),
        # Articles and the like are in every English answer.
        (("America", "the USA"), "It's in the south of the continent", "America"),
        (("William Shakespeare", "the Bard of Avon"), "the author of the play", "William Shakespeare"),
        (("It", "The The"), "the the", "The The"),
        # Of equals that whose wording is nearer.
        (("Hague", "The Hague"), "The Hague", "Hague"),
        (("the Tin Woodman", "Tin Woodman"), "the Tin Man", "the Tin Woodman"),
        # No blanks between words, and endings.
        (("Edo", "東京", "江戸"), "昔の名前は江戸です。", "江戸"),
        (("Peking", "北京"), "首都是北京。", "北京"),
        (("Seoul", "서울"), "수도는 서울입니다", "서울"),
        (("Rome", "Москва"), "столица находится в Москве", "Москва"),
        # A title said word for word is no less close than a name with letters beyond ASCII.
        (("Grand Inquisitor", "Tomás de Torquemada"), "Tomás de Torquemada, the Grand Inquisitor", "Grand Inquisitor"),
        (("?", "!"), "x", "?"),
    ],
)
def test_the_closest_comes_first(references: tuple[str, ...], prediction: str, best: str) -> None:
    keys = [reference.casefold() for reference in references]
    assert references[closest(keys, prediction).places[0]] == best


@given(st.lists(st.text(min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=6), st.text(max_size=20))
def test_every_place_is_ranked_once(keys: list[str], prediction: str) -> None:
    assert sorted(closest(keys, prediction).places) == list(range(len(keys)))


@given(st.lists(st.sampled_from(["ada", "lovelace", "北京", "the"]), min_size=2, max_size=5))
def test_equals_stay_in_their_order(keys: list[str]) -> None:
    ranked = closest(keys, "").places
    assert list(ranked) == sorted(ranked)


@pytest.mark.parametrize(
    ("reference", "prediction", "shared"),
    [
        ("a small lake", "the lake", True),
        ("the lake", "the sea", False),  # articles are in every answer
        ("The The", "the band", True),  # but here nothing else is
        ("water", "aquatic", False),
        ("котёнок", "два котёнка", True),  # five of seven runs of letters
        ("Москва", "Лондон", False),
        ("江戸", "昔の名前は江戸です。", True),
    ],
)
def test_whether_a_word_is_shared(reference: str, prediction: str, shared: bool) -> None:  # noqa: FBT001 - the answer
    assert closest(["x y z", reference.casefold()], prediction).shared is shared


SHORT_TEXTS = st.lists(st.sampled_from(["yes", "Yes.", "no", "no ", "a cat", "A  cat", "?"]), min_size=1, max_size=12)


def test_votes_are_counted_and_shown_most_frequent_first() -> None:
    # Table 6 of the paper: five tile colours of eleven annotators.
    votes = ("beige",) * 3 + ("brown",) * 2 + ("tan",) * 5 + ("ten",)
    counted = count_references(votes)
    assert counted.texts == ("tan", "beige", "brown", "ten")
    assert counted.counts == (5, 3, 2, 1)
    assert counted.votes


def test_equal_texts_are_one_and_shown_as_first_written() -> None:
    counted = count_references(("The  Cat.", "a dog", "the cat", "A DOG!", "a dog"))
    assert counted.texts == ("a dog", "The  Cat.")
    assert counted.counts == (3, 2)
    assert counted.keys == ("a dog", "the cat")


def test_aliases_that_differ_in_case_have_no_votes() -> None:
    counted = count_references(("Taming of the Shrew", "The Shrew", "The Taming Of The Shrew", "the shrew"))
    assert counted.texts == ("Taming of the Shrew", "The Shrew", "The Taming Of The Shrew")
    assert counted.counts == (1, 1, 1)
    assert not counted.votes


@pytest.mark.parametrize(
    ("references", "texts", "counts"),
    [
        (("yes", "no"), ("yes", "no"), (1, 1)),
        (("yes", "Yes", "no"), ("yes", "no"), (2, 1)),
        (("no", "Yes", "YES", "yes."), ("Yes", "no"), (3, 1)),
        (("yes", "Yes"), ("yes",), (2,)),
        (("yes", "wood"), ("yes", "wood"), (1, 1)),
        (("Yes, it is.", "wood", "No, it is not."), ("Yes, it is.", "wood", "No, it is not."), (1, 1, 1)),
    ],
)
def test_yes_and_no_are_votes_however_they_are_written(
    references: tuple[str, ...], texts: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    counted = count_references(references)
    assert (counted.texts, counted.counts, counted.votes) == (texts, counts, True)
    for prediction in ("yes", "no", "I would say no", "wood"):
        shown = choose_shown(without_rare(counted, 0.25), prediction, ReferenceForm(most=1))
        assert (shown.counted.texts, shown.counted.counts, shown.alone) == (texts, counts, None)


def test_rare_votes_of_binary_questions_are_left_out() -> None:
    counted = count_references(("yes", "Yes", "YES", "yes.", "Yes!", "no"))
    assert without_rare(counted, 0.25).texts == ("yes",)
    assert without_rare(counted, 0.2).texts == ("yes", "no")


def test_one_yes_is_an_alias() -> None:
    assert not count_references(("yes",)).votes
    assert not count_references(("Yes, it is.", "It is")).votes


def test_the_place_of_an_alias_that_is_shown_alone() -> None:
    counted = count_references(("U.S.", "u.s", "America", "USA"))
    assert counted.places == (0, 2, 3)
    assert choose_shown(counted, "America", ReferenceForm(most=1)).alone == 2
    assert choose_shown(counted, "nobody", ReferenceForm(most=1)).alone == 0
    assert choose_shown(counted, "America", ReferenceForm(most=2)).alone is None
    assert choose_shown(count_references(("America",)), "x", ReferenceForm()).alone == 0
    votes = count_references(("a cat", "a dog", "a dog"))
    assert choose_shown(votes, "a dog", ReferenceForm(most_counted=1)).alone is None


def test_a_text_of_marks_alone_is_its_own_key() -> None:
    assert count_references(("?", "!", "?")).keys == ("?", "!")


@pytest.mark.parametrize(
    ("counts", "share", "kept"),
    [
        # The paper: "lower than 25 % of the maximum answer frequency": a quarter itself stays.
        ({"a": 8, "b": 2, "c": 1}, 0.25, ("a", "b")),
        ({"a": 4, "b": 1}, 0.25, ("a", "b")),
        ({"a": 5, "b": 1}, 0.25, ("a",)),
        ({"a": 9, "b": 3, "c": 2}, 0.25, ("a", "b")),
        ({"a": 9, "b": 1}, 0.0, ("a", "b")),
        ({"a": 3, "b": 3, "c": 2}, 1.0, ("a", "b")),
        # A tenth of ten in floating point is a little more than 1.
        ({"a": 10, "b": 1}, 0.1, ("a", "b")),
    ],
)
def test_rare_ones_are_left_out(counts: dict[str, int], share: float, kept: tuple[str, ...]) -> None:
    references = tuple(name for name, count in counts.items() for _ in range(count))
    assert without_rare(count_references(references), share).texts == kept


@given(SHORT_TEXTS, st.floats(0, 1))
def test_the_most_frequent_one_always_stays(references: list[str], share: float) -> None:
    counted = count_references(references)
    kept = without_rare(counted, share)
    assert kept.texts[0] == counted.texts[0]
    assert list(counted.counts) == sorted(counted.counts, reverse=True)
    assert sum(counted.counts) == (len(references) if counted.votes else len(counted.texts))


def test_of_too_many_the_closest_stay_in_their_order() -> None:
    counted = count_references(("U.S.", "United States", "America", "the United States of America", "USA"))
    # Shares of own words, without articles, in the prediction: 0/2, 2/2, 1/1, 3/3, 0/1.
    assert choose_shown(counted, "It is america, these united states of", ReferenceForm(most=3)).counted.texts == (
        "United States", "America", "the United States of America",
    )  # fmt: skip
    assert choose_shown(counted, "no idea", ReferenceForm(most=2)).counted.texts == ("U.S.", "United States")
    assert choose_shown(counted, "no idea", ReferenceForm(most=5)) == ChosenReferences(counted, cut=False)


ECOSYSTEM = ("water", "lake", "unanswerable", "tropical", "lush", "cloudy", "warm")


@pytest.mark.parametrize(
    ("references", "prediction", "choice", "texts"),
    [
        # Table 4 of the paper: no word of the answer is in a reference, so order would decide which one is shown alone.
        (ECOSYSTEM, "aquatic", ShownReferences.CLOSEST, ("water",)),
        (ECOSYSTEM[::-1], "aquatic", ShownReferences.CLOSEST, ("warm",)),
        (ECOSYSTEM, "aquatic", ShownReferences.AUTO, ECOSYSTEM),
        (ECOSYSTEM[::-1], "aquatic", ShownReferences.AUTO, ECOSYSTEM[::-1]),
        (ECOSYSTEM, "a lush one", ShownReferences.AUTO, ("lush",)),
        (ECOSYSTEM, "a lush one", ShownReferences.ALL, ECOSYSTEM),
        (("usa", "united states of america"), "american", ShownReferences.AUTO, ("usa", "united states of america")),
        # Articles and the like are no word in common.
        (("the boat", "a ship"), "the street", ShownReferences.AUTO, ("the boat", "a ship")),
        # In words beyond ASCII runs of letters are: they may have endings.
        (("котёнок", "щенок"), "котёнка", ShownReferences.AUTO, ("котёнок",)),
    ],
)
def test_aliases_that_are_shown(
    references: tuple[str, ...], prediction: str, choice: ShownReferences, texts: tuple[str, ...]
) -> None:
    shown = choose_shown(count_references(references), prediction, ReferenceForm(most=1), choice)
    assert shown.counted.texts == texts
    assert shown.alone == (references.index(texts[0]) if len(texts) == 1 else None)


@given(SHORT_TEXTS, st.sampled_from(["yes", "a cat", "nothing of it"]), st.sampled_from(ShownReferences))
def test_of_votes_every_choice_shows_all(references: list[str], prediction: str, choice: ShownReferences) -> None:
    counted = count_references([*references, references[0]])
    form = ReferenceForm(most=1)
    assert choose_shown(counted, prediction, form, choice).counted.counts == counted.counts


def test_of_votes_the_most_frequent_stay() -> None:
    counted = count_references(("cat", "cat", "dog", "dog", "dog", "bird"))
    form = ReferenceForm(most=1, most_counted=2)
    assert choose_shown(counted, "a bird", form).counted.texts == ("dog", "cat")
    assert choose_shown(count_references(("cat", "dog", "bird")), "a bird", form).counted.texts == ("bird",)


def test_together_they_are_as_long_as_a_prediction() -> None:
    long, longer = " ".join(["word"] * 1000), "word " * 1030
    cut = choose_shown(count_references((longer,)), "x", ReferenceForm(most=9))
    assert (cut.counted.texts, cut.cut) == ((" ".join(["word"] * 1024),), True)
    cut = choose_shown(count_references((long, "b " * 30, "c")), "x", ReferenceForm(most=9))
    assert (cut.counted.texts, cut.cut) == ((long, "c"), True)
    cut = choose_shown(count_references(("x" * 1_000_000, "y")), "x", ReferenceForm(most=9))
    assert (cut.counted.texts, cut.cut) == (("x" * 16_384,), True)


def test_the_closest_find_room_first() -> None:
    counted = count_references((*(f"number {n}" for n in range(1000)), "word " * 1000))
    shown = choose_shown(counted, "number 700", ReferenceForm(most=1000))
    # 1 024 words are 512 references of two words.
    assert shown.counted.texts == (*(f"number {n}" for n in range(511)), "number 700")
    assert shown.cut


def test_how_they_are_written() -> None:
    form = ReferenceForm(plain="'{reference}'", counted="{reference} x{count}/{total}", separator=" or ", most=9)
    assert write_references(count_references(("a", "b")), form, Delimiters()) == "'a' or 'b'"
    assert write_references(count_references(("a", "b", "b")), form, Delimiters()) == "b x2/3 or a x1/3"
    assert (
        write_references(count_references(("Answer: a\n<|x|>",)), form, Delimiters(names=("Answer",)))
        == "'Answer - a < |x|>'"
    )
    assert write_references(count_references(("{count} {0}",)), form, Delimiters()) == "'{count} {0}'"
