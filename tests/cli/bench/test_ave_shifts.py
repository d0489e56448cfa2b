"""Dates and numbers in another form, which a person would call the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.bench.few_words import WORDS, FewWords

from gradewire_cli.bench.ave_shifts import KEPT, Shift, other_value_form, shifted


@pytest.mark.parametrize(
    ("text", "form", "how"),
    [
        ("May 19, 2017", "19 May 2017", "date order"),
        ("Sept. 3rd, 1066", "3 September 1066", "date order"),
        ("1st of march 1999", "March 1, 1999", "date order"),
        ("22 November 1914", "November 22, 1914", "date order"),
        ("October 1978", "October of 1978", "month"),
        ("October of 1978", "October 1978", "month"),
        ("1974", "the year 1974", "year"),
        ("in 1974", "1974", "year"),
        ("90%", "90 percent", "percent"),
        ("2.5 per cent", "2.5%", "percent"),
        ("two parties", "2 parties", "digits"),
        ("Twenty-one", "21", "digits"),
        ("7 dwarfs", "seven dwarfs", "words"),
        ("99", "ninety-nine", "words"),
    ],
)
def test_dates_and_numbers_are_written_otherwise(text: str, form: str, how: str) -> None:
    assert other_value_form(text) == (form, how)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Paris",
        "100",
        "235 runs",
        "1979/80",
        "the 1960s",
        "May",
        "may 5 people come",
        "\u0663",
        "\u00b2",
        "9" * 10**6,
    ],
)
def test_other_texts_have_no_other_form(text: str) -> None:
    assert other_value_form(text) is None


@given(st.integers(0, 99), st.sampled_from(["", " ships", " of them"]))
def test_digits_and_words_lead_back(number: int, rest: str) -> None:
    words = other_value_form(f"{number}{rest}")
    assert words is not None
    assert not any(letter.isdigit() for letter in words[0])
    assert other_value_form(words[0]) == (f"{number}{rest}", "digits")


@given(st.integers(1, 28), st.sampled_from(["January", "May", "December"]), st.integers(100, 2099))
def test_the_order_of_a_date_leads_back(day: int, month: str, year: int) -> None:
    date = f"{month} {day}, {year}"
    other = other_value_form(date)
    assert other == (f"{day} {month} {year}", "date order")
    assert other_value_form(other[0]) == (date, "date order")


def shifts(reference: str, *, of_person: bool = False) -> set[tuple[str, str]]:
    """What comes of a reference under twenty keys."""
    few = FewWords()
    return {
        tuple(shifted(reference, key=f"key {number}", of_person=of_person, words=WORDS, thesaurus=few))
        for number in range(20)
    }


@pytest.mark.parametrize(
    ("reference", "form", "how"),
    [
        ("a lizard", "lizards", "plural"),
        ("water-holding frog", "water-holding frogs", "plural"),
        ("red cars", "red car", "singular"),
        ("the birth of Jesus", "the births of Jesus", "plural"),
        ("Seeds", "Seed", "singular"),
        ("United Kingdom", "UK", "synonym"),
        ("to protect the king", "protecting the king", "gerund"),
        ("preventing a war", "prevented a war", "past"),
        ("May 19, 2017", "19 May 2017", "date order"),
        ("two lizards", "2 lizards", "digits"),
        # Names: one that is a bird as well, two words written large, one that would say less, one of no lexicon.
        ("Turkey", "Turkey", KEPT),
        ("Harlem Cars", "Harlem Cars", KEPT),
        ("Edward IV", "Edward IV", KEPT),
        ("Tilda Swinton", "Tilda Swinton", KEPT),
        ("", "", KEPT),
    ],
)
def test_a_reference_takes_the_form_that_applies(reference: str, form: str, how: str) -> None:
    assert shifts(reference) == {(form, how)}


def test_where_number_and_synonym_apply_the_key_chooses() -> None:
    assert shifts("automobile") == {("automobiles", "plural"), ("car", "synonym")}
    assert shifts("the automobiles") == {("the automobile", "singular"), ("the cars", "synonym")}
    # "car" has two senses: its synonym might be another thing.
    assert shifts("car") == {("cars", "plural")}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Tilda Swinton", "Swinton, Tilda"),
        ("Richard Bedford Bennett", "Bennett, Richard Bedford"),
        ("M.C. Escher", "Escher, M.C."),
        ("Émile Zola", "Zola, Émile"),
        ("The Beatles", None),
        ("Edward IV", None),
        ("Sammy Davis Jr.", None),
        ("Pope Gregory I the Great", None),
        ("Madonna", None),
    ],
)
def test_the_name_of_a_person_is_written_as_in_an_index(name: str, form: str | None) -> None:
    assert shifts(name, of_person=True) == {(form or name, "name order" if form else KEPT)}
    assert shifts(name) == {(name, KEPT)}


@given(st.text(max_size=60), st.text(max_size=5))
def test_any_text_comes_through_and_what_is_kept_is_the_reference(reference: str, key: str) -> None:
    found = shifted(reference, key=key, of_person=True, words=WORDS, thesaurus=FewWords())
    assert found == shifted(reference, key=key, of_person=True, words=WORDS, thesaurus=FewWords())
    assert found.text == reference if found.how == KEPT else found.text != reference
    assert bool(found.text.strip()) == bool(reference.strip())


def test_a_text_of_a_megabyte_is_kept() -> None:
    for text in ("x" * 10**6, "car " * 250_000, "A" * 10**6, "one " * 250_000):
        assert shifts(text, of_person=True) == {Shift(text, KEPT)}
