import pytest

from gradewire_server.judges.local.labels import LabelsError, LabelTokens, find_labels


def characters(text: str) -> list[int]:
    return [ord(character) for character in text]


def words(text: str) -> list[int]:
    """A blank belongs to the word behind it, as in many vocabularies; each word is one token."""
    return [hash_of(word) for word in text.replace(" ", "\0 ").split("\0") if word]


def hash_of(word: str) -> int:
    return sum(ord(character) * 31**at for at, character in enumerate(word))


def test_what_all_options_begin_with_belongs_to_the_prompt() -> None:
    assert find_labels(characters, "A:", ["1", "2"]) == LabelTokens(tuple(characters("A: ")), (ord("1"), ord("2")))
    assert find_labels(words, "A:", ["1", "2"]) == LabelTokens((hash_of("A:"),), (hash_of(" 1"), hash_of(" 2")))


def test_an_empty_turn_begins_with_the_option_itself() -> None:
    assert find_labels(characters, "", ["yes", "no"]) == LabelTokens((), (ord("y"), ord("n")))


def test_options_may_share_their_begin_where_all_do() -> None:
    assert find_labels(characters, "", ["0.1", "0.2", "0.3"]) == LabelTokens(
        tuple(characters("0.")), tuple(characters("123"))
    )


def test_two_options_that_begin_alike_among_others_cannot_be_told_apart() -> None:
    with pytest.raises(LabelsError, match="'1' and '10' begin with the same token"):
        find_labels(characters, "", ["1", "10", "2"])


def test_an_option_that_another_one_goes_on_from_is_refused() -> None:
    with pytest.raises(LabelsError, match="'1' is the begin of another"):
        find_labels(characters, "", ["1", "10"])


@pytest.mark.parametrize("options", [[], ["yes"], ["yes", "yes"]])
def test_there_is_something_to_choose(options: list[str]) -> None:
    with pytest.raises(LabelsError):
        find_labels(characters, "", options)
