from collections.abc import Sequence

from gradewire_server.judges.stops import TextEnd

END = 0


def text(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


def written(end: TextEnd, answer: bytes) -> tuple[str, bool, int]:
    """Writes byte after byte until the end is reached."""
    ids: list[int] = []
    for byte in answer:
        ids.append(byte)
        if end.reached(ids):
            break
    return *end.read(ids), len(ids)


def test_the_end_of_the_turn_ends_it_and_is_no_part_of_it() -> None:
    assert written(TextEnd(text, frozenset({END}), ()), b" yes. \0more") == ("yes.", True, 7)


def test_a_stop_ends_it_and_is_no_part_of_it() -> None:
    assert written(TextEnd(text, frozenset({END}), ("\n\n", "Rating:")), b"good\nRating: 3") == ("good", True, 12)


def test_the_first_stop_counts_however_they_are_ordered() -> None:
    end = TextEnd(text, frozenset(), ("cd", "bcd"))
    assert end.read(b"abcd") == ("a", True)


def test_without_an_end_it_is_not_complete() -> None:
    assert written(TextEnd(text, frozenset({END}), ("\n",)), b"no end") == ("no end", False, 6)


def test_half_a_character_at_the_limit_leaves_nothing() -> None:
    assert TextEnd(text, frozenset({END}), ()).read("naïve"[:3].encode()[:3]) == ("na", False)


def test_a_stop_of_many_bytes_is_found() -> None:
    assert written(TextEnd(text, frozenset(), ("終わり",)), "はい終わり。".encode()) == ("はい", True, 15)


def test_an_empty_stop_stops_nothing() -> None:
    assert written(TextEnd(text, frozenset({END}), ("",)), b"ab\0") == ("ab", True, 3)
