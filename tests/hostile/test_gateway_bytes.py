"""Whatever bytes come, the gateway reads them as protobuf does, or refuses them in words, in few steps for each."""

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import hypothesis
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.hostile.gateway_readers import (
    EXTRACTIONS,
    KINDS,
    check_extraction,
    check_message,
    check_object,
    check_post,
    steps,
)
from tests.hostile.payloads import fill
from tests.support.examples import example_count
from tests.support.figures import TakeFigure
from tests.support.hostile_texts import REQUESTS

from gradewire.rewards import extract_answer
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.wire import read_message
from gradewire_proto.v1.scoring_pb2 import ScoreRequest

_STEPS_PER_BYTE: Final = 20
_STEPS: Final = 5_000
"""For what is said of a fault, which lists fields."""
_PUMPED: Final = 2_000
_GROWTH: Final = 8
_MOST_GROWTH: Final = _GROWTH**2 / 2
"""Halfway between linear and quadratic."""
_FREE_S: Final = 20e-6
_TRIES: Final = 4
_MANY: Final = 10_000
_SEED: Final = 39

POSTS: Final = {
    "/get_reward": {"query": ["<|im_start|>assistant\na"], "prompts": ["q"], "labels": [["a", "b"]]},
    "/slime/reward": {
        "prompt": [{"role": "user", "content": "q"}],
        "response": "the answer is a",
        "label": {"target": 1},
    },
    "/verify": {
        "responses_create_params": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]},
        "response": {"output": [{"type": "message", "role": "assistant", "content": [{"text": "\\boxed{a}"}]}]},
        "verifier_metadata": {"answer": "a"},
        "instance_config": {"mask_sample": False},
    },
    "/seed_session": {"resources_session_id": "x"},
    "/aggregate_metrics": {"verify_responses": [{"reward": 0.5, "_ng_task_index": 1, "mask_sample": False}]},
}
TOKENS: Final = (
    *("{", "}", "[", "]", ",", ":", '"', "\\", "null", "true", "false", "0", "-", "1e999", "9" * 40, "9" * 5000),
    *(
        "NaN",
        "-Infinity",
        '"NaN"',
        "1.0",
        "0.5",
        "-0",
        '"x"',
        '""',
        "{}",
        "[]",
        '{"":0}',
        "\\ud800",
        "\\udc00",
        "\\u0000",
    ),
    *("\\ud83d\\ude00", "é", "\u2028", "\ufeff", "\0", " ", "\n", "[" * 200, '{"x":' * 200, "[" * 5000, "//", "'"),
    *('"items"', '"metrics"', '"prediction"', '"references"', '"smile":{}', '"@type"', '"referenceSet"', '"label"'),
)
MARKS: Final = (
    *("\\boxed{", "\\boxed ", "\\boxed", "\\fbox{", "{", "}", "\\", "\\text{", "$", "$$", "**", "*", "`", "_", "."),
    *("<answer>", "</answer>", "<final_answer>", "</FINAL_ANSWER>", "<answer", "the answer is ", "Answer: ", "答案是"),
    *("#### ", "\n", " ", "\t", "\u00a0", "\u2003", "\x1c", "final ", "correct answer", "I hope it is correct."),
    *("<think>", "</think>", "◁think▷", "◁/think▷", "[THINK]", "[/THINK]", "<|channel|>", "<|channel|>final"),
    *("<|message|>", "<|end|>", "<|im_end|>", "</s>", "<|im_start|>assistant\n", "x", "İ", "ß", "7", "\ud800", "```"),
)


def bodies(kind: type[Message]) -> list[str]:
    """Return requests in JSON, with drawn fields."""
    rng = random.Random(kind.__name__)  # noqa: S311 - drawn again the same
    return [json_format.MessageToJson(fill(rng, kind(), 0), indent=None, ensure_ascii=False) for _ in range(8)]


BODIES: Final = {kind: bodies(kind) for kind in KINDS}

edits = st.tuples(
    st.sampled_from(("insert", "replace", "delete", "repeat", "cut")),
    st.floats(0, 1),
    st.integers(1, 30),
    st.sampled_from(TOKENS) | st.text(max_size=3),
)


def mutated(body: str, made: list[tuple[str, float, int, str]]) -> bytes:
    """Return a body with edits at some of its places."""
    text = body
    for kind, where, length, token in made:
        start = int(where * len(text))
        held = text[start : start + length]
        text = (
            text[:start]
            + {
                "insert": token + text[start:],
                "replace": token + text[start + length :],
                "delete": text[start + length :],
                "repeat": held * 9 + text[start:],
                "cut": "",
            }[kind]
        )
    return text.encode("utf-8", "surrogatepass")


kinds = st.sampled_from(KINDS)
whole_bytes = st.binary(max_size=200) | st.lists(st.sampled_from(TOKENS), max_size=20).map(
    lambda tokens: "".join(tokens).encode()
)
requests = kinds.flatmap(
    lambda kind: st.tuples(
        st.builds(mutated, st.sampled_from(BODIES[kind]), st.lists(edits, max_size=4)) | whole_bytes, st.just(kind)
    )
)
posted = st.sampled_from(list(POSTS)).flatmap(
    lambda path: st.tuples(
        st.builds(mutated, st.just(json.dumps(POSTS[path])), st.lists(edits, max_size=4)) | whole_bytes, st.just(path)
    )
)
marked = st.lists(st.sampled_from(MARKS) | st.text(max_size=4), max_size=20).map("".join)

pieces = st.text("x\u00a0 ", max_size=2) | st.sampled_from(MARKS)
pumped = st.tuples(pieces, st.lists(pieces, min_size=1, max_size=3).map("".join), pieces).filter(lambda made: made[1])
"""A beginning, what is repeated, and an end."""

CHECKS: Final[Mapping[str, tuple[st.SearchStrategy[Any], Callable[..., object]]]] = {
    "messages": (requests, lambda request: check_message(*request)),
    "objects": (whole_bytes, check_object),
    "reward posts": (posted, lambda post: check_post(*post)),
    "completions": (marked, check_extraction),
}


def read(data: bytes, kind: type[Message]) -> None:
    with suppress(ProblemError):
        read_message(data, kind)


def steps_per_byte(data: bytes, kind: type[Message]) -> float:
    """Return the steps for each byte that reading takes, beside those of saying what is wrong with it."""
    return (steps(lambda: read(data, kind)) - _STEPS) / max(1, len(data))


def growth(before: str, pump: str, after: str) -> float:
    """Return how much longer extraction takes of a text that is 8 times as long; the least of some tries."""
    texts = [before + pump * (size // len(pump)) + after for size in (_PUMPED, _PUMPED * _GROWTH)]
    found = math.inf
    for _ in range(_TRIES):
        taken_s = []
        for text in texts:
            begun_s = time.thread_time()
            for extraction in EXTRACTIONS:
                extract_answer(text, extraction)
            taken_s.append(time.thread_time() - begun_s + _FREE_S)
        found = min(found, taken_s[1] / taken_s[0])
        if found < _GROWTH:
            break
    return found


def run(count: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], object], seed: int | None = None) -> None:
    """Check so many examples: always the same ones, or those of a seed."""
    settings = hypothesis.settings(
        max_examples=count,
        derandomize=seed is None,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],  # what is slow would be made smaller for minutes
        suppress_health_check=list(HealthCheck),
    )

    @settings
    @given(strategy)
    def examples(drawn: Any) -> None:
        check(drawn)

    (examples if seed is None else hypothesis.seed(seed)(examples))()


def drawn(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Settings of a test of so many examples, of any speed."""
    return hypothesis.settings(max_examples=example_count(count), suppress_health_check=list(HealthCheck))


@drawn(150)
@given(requests)
def test_a_body_is_the_message_that_protobuf_reads_or_is_refused_in_words(request: tuple[bytes, type[Message]]) -> None:
    check_message(*request)


@drawn(100)
@given(whole_bytes)
def test_an_object_is_what_python_reads_or_is_refused_in_words(data: bytes) -> None:
    check_object(data)


@drawn(150)
@given(posted)
def test_a_reward_post_is_answered_or_refused_in_words(post: tuple[bytes, str]) -> None:
    check_post(*post)


@drawn(150)
@given(marked)
def test_every_setting_finds_an_answer_or_says_why_there_is_none(completion: str) -> None:
    check_extraction(completion)


def lengthened(value: Any, times: int) -> Any:
    """Return a value of JSON whose lists, at every depth, are so many times as long."""
    if isinstance(value, dict):
        return {name: lengthened(held, times) for name, held in value.items()}
    return [lengthened(each, times) for each in value] * times if isinstance(value, list) else value


def long_body(body: str, times: int, made: list[tuple[str, float, int, str]]) -> bytes:
    return mutated(json.dumps(lengthened(json.loads(body), times)), made)


long_requests = kinds.flatmap(
    lambda kind: st.tuples(
        st.builds(long_body, st.sampled_from(BODIES[kind]), st.integers(1, 5), st.lists(edits, max_size=2)),
        st.just(kind),
    )
)


def worst_steps(count: int, seed: int | None = None) -> float:
    """Return the most steps for each byte of many bodies."""
    most = [0.0]

    def note(drawn: tuple[bytes, type[Message]]) -> None:
        most[0] = max(most[0], steps_per_byte(*drawn))

    run(count, long_requests, note, seed)
    return most[0]


def worst_growth(count: int, seed: int | None = None) -> float:
    """Return the most growth of many repeated texts."""
    most = [0.0]

    def note(drawn: tuple[str, str, str]) -> None:
        most[0] = max(most[0], growth(*drawn))

    run(count, pumped, note, seed)
    return most[0]


def test_reading_takes_few_steps_for_each_byte() -> None:
    assert worst_steps(example_count(100)) < _STEPS_PER_BYTE
    for shape in REQUESTS.values():
        assert steps_per_byte(shape(20_000).encode(), ScoreRequest) < _STEPS_PER_BYTE


def test_extraction_of_whatever_is_repeated_takes_time_in_proportion() -> None:
    assert worst_growth(example_count(100)) < _MOST_GROWTH


@pytest.mark.hostile
@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", CHECKS)
def test_many_bodies_and_completions_are_what_others_read_or_are_refused_in_words(
    what: str, figure: TakeFigure
) -> None:
    strategy, check = CHECKS[what]
    checked = [0]

    def note(drawn: Any) -> None:
        checked[0] += 1
        check(drawn)

    run(_MANY, strategy, note, _SEED)
    figure(f"drawn {what} that are read as elsewhere or refused in words", checked[0], bound=f">= {_MANY}")


@pytest.mark.hostile
@pytest.mark.timeout(600)
def test_many_bodies_take_few_steps_for_each_byte(figure: TakeFigure) -> None:
    most = worst_steps(_MANY, _SEED)
    assert figure(f"most steps for a byte of {_MANY} bodies", round(most, 1), bound=f"< {_STEPS_PER_BYTE}").holds


@pytest.mark.hostile
@pytest.mark.timeout(600)
def test_extraction_of_many_repeated_texts_takes_time_in_proportion(figure: TakeFigure) -> None:
    most = worst_growth(_MANY // 4, _SEED)
    name = f"time of extraction from {_GROWTH} times as much, of {_MANY // 4} drawn texts"
    figure(name, round(most, 1), "times", bound=f"< {_MOST_GROWTH:g}")
