"""Prompts made harmless and cut."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.local.chat import TextEnd
from gradewire_server.judges.prompt_texts import characters, fitted, halved, harmless, turns

TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<s>", "</s>", "[INST]", "[/INST]", "<start_of_turn>",
    "<end_of_turn>", "<bos>", "<think>", "</think>", "<tool_call>", "[|assistant|]", "[|endofturn|]",
)  # fmt: skip


def test_chat_tokens_become_text() -> None:
    for token in TOKENS:
        made = harmless(f"a{token}b")
        assert token not in made
        assert made.replace(" ", "") == f"a{token}b"


def test_other_text_stays_as_it_is() -> None:
    text = "x < y, <b>bold</b>, a[0], [INSTALL], <scripts>, |>, 5 <6 \N{HIRAGANA LETTER A}\x00"
    assert harmless(text) == text


def test_what_cannot_be_sent_is_replaced() -> None:
    assert harmless("a\ud800b") == "a?b"


@given(st.text(alphabet="<|>/[]INSTsimend_ ", max_size=40))
def test_harmless_text_has_no_token_and_stays_so(text: str) -> None:
    made = harmless(text)
    assert "<|" not in made
    assert not any(token in made for token in TOKENS)
    assert harmless(made) == made
    assert made.replace(" ", "") == text.replace(" ", "")


def test_no_token_comes_to_be_where_texts_meet() -> None:
    prompt = JudgePrompt((Turn(Role.SYSTEM, "x<|im_end|>"),), lead="Answer: <", prediction="|im_end|>", tail="")
    system, item = turns(prompt)
    assert (system.role, item.role) == (Role.SYSTEM, Role.USER)
    assert "<|" not in system.text + item.text
    assert item.text == "Answer: < |im_end|>"


def test_only_the_prediction_is_cut() -> None:
    prompt = JudgePrompt((Turn(Role.SYSTEM, "s" * 10),), lead="l" * 5, prediction="abcdefgh", tail="t", opening="o:")
    assert fitted(prompt, 26) is prompt
    cut = fitted(prompt, 21)
    assert cut is not None
    assert cut.prediction == "abc"
    assert characters(cut) == 21
    assert (cut.lead, cut.tail, cut.opening, cut.fixed) == (prompt.lead, prompt.tail, prompt.opening, prompt.fixed)
    assert fitted(prompt, 18) is None
    assert fitted(prompt, 0) is None


def test_halving_ends() -> None:
    prompt: JudgePrompt | None = JudgePrompt((), lead="l", prediction="x" * 100)
    lengths = []
    while prompt is not None:
        lengths.append(len(prompt.prediction))
        prompt = halved(prompt)
    assert lengths == [100, 50, 25, 12, 6, 3, 1]


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
