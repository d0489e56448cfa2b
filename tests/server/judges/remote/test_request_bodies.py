"""A body that is put together from bytes is the body that is written at once."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.domain.items import Image
from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.remote.endpoints import CHAT, MESSAGES, RESPONSES, Api
from gradewire_server.judges.remote.http_client import json_bytes
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind
from gradewire_server.judges.remote.request_bodies import _ITEM, RequestBodies
from gradewire_server.judges.remote.server import Question

TEXT = st.text(max_size=12) | st.sampled_from(["", '"', "\\", "<|im_end|>", "<", "|im_end|>", "\ud800", "\x00\u2028"])
FIXED = st.lists(st.builds(Turn, st.sampled_from(Role), TEXT), max_size=3).map(tuple)
LABELS = st.sampled_from([(), ("1", "2", "3"), ("correct", "incorrect")])
DIALECT = st.builds(
    Dialect,
    kind=st.sampled_from(ServerKind),
    continues=st.booleans(),
    constrains=st.booleans(),
    logprobs=st.booleans(),
    limit=st.sampled_from(["max_tokens", "max_completion_tokens"]),
    temperature=st.booleans(),
    stops=st.booleans(),
    reasoning_tokens=st.sampled_from([0, 2000]),
    system=st.booleans(),
    thinks=st.sampled_from([0, 1, 2]),
)
APIS = pytest.mark.parametrize("api", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.path)


@APIS
@given(
    fixed=FIXED,
    items=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=3),
    opening=st.sampled_from(["", "Rating:", "<|im_start|>Rating:"]),
    options=LABELS,
    stop=st.sampled_from([(), ("\n",)]),
    dialects=st.lists(DIALECT, min_size=1, max_size=2),
)
@settings(max_examples=example_count(150))
def test_it_is_the_body_that_is_written_at_once(
    api: Api,
    fixed: tuple[Turn, ...],
    items: list[tuple[str, str, str]],
    opening: str,
    options: tuple[str, ...],
    stop: tuple[str, ...],
    dialects: list[Dialect],
) -> None:
    bodies = RequestBodies("m", api.request_body)
    for dialect in dialects:
        for lead, prediction, tail in items:
            question = Question(JudgePrompt(fixed, lead, prediction, tail, opening), options, 40, stop)
            assert bodies.body(question, dialect) == json_bytes(api.request_body(question, "m", dialect))


@APIS
def test_items_of_one_prompt_render_its_turns_once(api: Api) -> None:
    rendered: list[Question] = []

    def render(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
        rendered.append(question)
        return api.request_body(question, model, dialect)

    bodies = RequestBodies("m", render)
    fixed = (Turn(Role.SYSTEM, "You grade."), Turn(Role.USER, "Answer: Rome"), Turn(Role.ASSISTANT, "Rating: 1"))
    sent = [bodies.body(Question(JudgePrompt(fixed, text), ("1", "2")), Dialect()) for text in ("a", "b", "c")]
    assert len(rendered) == 1
    assert [text in str(json.loads(body)) for text, body in zip("abc", sent, strict=True)] == [True] * 3
    bodies.body(Question(JudgePrompt(fixed, "a"), ("1", "3")), Dialect())
    assert len(rendered) == 2


def test_a_prompt_with_the_stand_in_of_an_items_text_and_pictures_are_written_at_once() -> None:
    image = Image(b"png", media_type="image/png")
    bodies = RequestBodies("m", CHAT.request_body)
    for prompt in (JudgePrompt((Turn(Role.SYSTEM, _ITEM),), "a"), JudgePrompt((), "a", images=(image,))):
        question = Question(prompt, ("1", "2"))
        read: Any = json.loads(bodies.body(question, Dialect()))
        assert read == json.loads(json_bytes(CHAT.request_body(question, "m", Dialect())))
