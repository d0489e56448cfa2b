"""Answers of decision servers: probabilities that are checked, or an error; never anything else."""

import asyncio
import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote.decision_models import about
from tests.server.judges.remote.remote_judges import eventually, prompt
from tests.support.examples import example_count

from gradewire_server.judges.remote.decision_forms import DECISIONS, FORMS, SYSTEM_ONE, Form, decision_question, names
from gradewire_server.judges.remote.decisions import DecisionServer, answer_of, answers_of
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault, Reply
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.judges.remote.server import Answer, Question
from gradewire_server.settings.judge import RemoteJudgeConfig

LABELS = ("1", "2", "3")
ASKED = decision_question(Question(prompt(), options=LABELS))
GOOD = {"1": 0.1, "2": 0.2, "3": 0.7}


def read(body: object, form: Form = SYSTEM_ONE) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer_of(Reply(200, content, "", "http://h/v1"), form, ASKED)


def one(probabilities: object, **more: Any) -> dict[str, Any]:
    return {"answers": {"verdict": {"type": "choice", "probabilities": probabilities}}, **more}


def many(*entries: object, **more: Any) -> dict[str, Any]:
    return {"answers": [{"type": "choice", "name": "verdict", "probabilities": list(entries)} | more]}


def each(*bodies: object, form: Form = SYSTEM_ONE, **more: Any) -> list[Answer | RemoteError]:
    """What is read of the answers to several questions."""
    answers: object = dict(zip(names(len(bodies)), bodies, strict=True)) if form is SYSTEM_ONE else list(bodies)
    content = json.dumps({"answers": answers, **more}).encode()
    return answers_of(Reply(200, content, "", "http://h/v1"), form, [ASKED] * len(bodies))


def entry(value: object, probability: object) -> dict[str, object]:
    return {"value": value, "probability": probability}


def test_probabilities_are_put_into_the_order_of_the_labels() -> None:
    turned = dict(reversed(GOOD.items()))
    assert read(one(turned)).probabilities == pytest.approx((0.1, 0.2, 0.7))
    listed = many(*(entry(*each) for each in turned.items()))
    assert read(listed, DECISIONS).probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert read(many(*(entry(*each) for each in GOOD.items()), name=None), DECISIONS).probabilities is not None


def test_nothing_was_demonstrated() -> None:
    assert not read(one(GOOD)).demonstrated


def test_what_rounding_left_is_divided_out() -> None:
    thirds = read(one({"1": 0.33, "2": 0.33, "3": 0.33})).probabilities
    assert thirds == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert math.fsum(read(one({"1": 0.3334, "2": 0.3333, "3": 0.3334})).probabilities or ()) == pytest.approx(
        1, abs=1e-12
    )


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 40, "output_tokens": 0}, (40, 0)),
        ({"prompt_tokens": 40, "completion_tokens": 2}, (40, 2)),
        ({"input_tokens": 0, "output_tokens": 0}, (None, None)),  # it does not count
        ({"input_tokens": -1, "output_tokens": 5}, (None, None)),
        ({"input_tokens": 40}, (40, None)),
        (None, (None, None)),
        ("lots", (None, None)),
    ],
)
def test_tokens_are_those_that_a_server_counts(usage: object, counted: tuple[int | None, int | None]) -> None:
    answer = read(one(GOOD, usage=usage))
    assert (answer.tokens.prompt, answer.tokens.generated) == counted


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "JSON"),
        (b"[]", "JSON object"),
        ({}, "than decisions"),
        ({"answers": []}, "than decisions"),
        ({"answers": {}}, "no answer"),
        ({"answers": {"other": {"type": "choice", "probabilities": GOOD}}}, "no answer"),
        ({"answers": {"verdict": None}}, "no answer"),
        ({"answers": {"verdict": {"type": "refusal"}}}, "refusal"),
        ({"answers": {"verdict": {"type": "noul", "noul": 0.5}}}, "a different type"),
        ({"answers": {"verdict": {"type": "choice", "choice": "3"}}}, "without probabilities"),
        (one([0.1, 0.2, 0.7]), "without probabilities"),
        (one({"1": 0.3, "3": 0.7}), "the wrong labels"),
        (one({**GOOD, "4": 0.0}), "the wrong labels"),
        (one({"1": 0.1, "2": 0.2, "3 ": 0.7}), "the wrong labels"),
        (one({"1": 0.1, "2": 0.2, "3": 0.5}), "sum to 0.8"),
        (one({"1": 0.0, "2": 0.0, "3": 0.0}), "sum to 0"),
        (one({"1": 1.0, "2": 1.0, "3": 1.0}), "sum to 3"),
        (one({"1": -0.1, "2": 0.4, "3": 0.7}), "from 0 to 1"),
        (one({"1": 1.5, "2": 0.0, "3": 0.0}), "from 0 to 1"),
        (one({"1": math.nan, "2": 0.5, "3": 0.5}), "from 0 to 1"),
        (one({"1": math.inf, "2": 0.5, "3": 0.5}), "from 0 to 1"),
        (one({"1": "0.1", "2": 0.2, "3": 0.7}), "from 0 to 1"),
        (one({"1": None, "2": 0.5, "3": 0.5}), "from 0 to 1"),
        (one({"1": True, "2": False, "3": False}), "from 0 to 1"),
        (one({"1": 10**400, "2": 0, "3": 0}), "from 0 to 1"),
        (b'{"answers": ' + b"[" * 100_000, "JSON"),
    ],
)
def test_what_is_no_distribution_over_the_labels_is_refused(body: object, words: str) -> None:
    with pytest.raises(RemoteError, match=words) as caught:
        read(body)
    assert caught.value.kind is RemoteFault.UNREADABLE


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"answers": {}}, "than decisions"),
        ({"answers": []}, "no answer"),
        ({"answers": [None]}, "no answer"),
        ({"answers": [{"type": "refusal", "name": "verdict"}]}, "refusal"),
        (many(entry("1", 1.0), name="other"), "no answer"),
        (many(entry("1", 1.0), name=[]), "no answer"),
        (many("1", "2", "3"), "without probabilities"),
        (many(entry("1", 0.5), entry("2", 0.2), entry("2", 0.0), entry("3", 0.3)), "the wrong labels"),
        (many(entry(value=True, probability=0.5), entry("2", 0.2), entry("3", 0.3)), "the wrong labels"),
        (many(entry("1", 0.5), entry("2", 0.2)), "the wrong labels"),
        (many({"value": "1"}, entry("2", 0.2), entry("3", 0.8)), "from 0 to 1"),
    ],
)
def test_lists_of_decisions_are_checked_alike(body: object, words: str) -> None:
    with pytest.raises(RemoteError, match=words):
        read(body, DECISIONS)


def test_each_question_of_several_gets_its_answer_or_what_is_wrong_with_it() -> None:
    turned = {"1": 0.7, "2": 0.2, "3": 0.1}
    first, bad, missing, last = each(
        {"probabilities": GOOD}, {"probabilities": {"1": 0.5, "2": 0.5, "3": 0.5}}, None, {"probabilities": turned}
    )
    assert isinstance(first, Answer)
    assert first.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert isinstance(last, Answer)
    assert last.probabilities == pytest.approx((0.7, 0.2, 0.1))
    assert isinstance(bad, RemoteError)
    assert "sum to 1.5" in bad.failure.message
    assert isinstance(missing, RemoteError)
    assert missing.kind is RemoteFault.UNREADABLE


def test_lists_of_decisions_come_in_the_order_of_the_questions_named_or_not() -> None:
    good = {"probabilities": [entry(*pair) for pair in GOOD.items()]}
    for named in ({}, {"name": None}, {"name": "verdict_2"}):
        first, second = each({**good, "name": "verdict"}, {**good, **named}, form=DECISIONS)
        assert isinstance(first, Answer)
        assert isinstance(second, Answer)
    with pytest.raises(RemoteError, match="the wrong questions"):
        each({**good, "name": "verdict_2"}, {**good, "name": "verdict"}, form=DECISIONS)


@pytest.mark.parametrize("form", [SYSTEM_ONE, DECISIONS])
@pytest.mark.parametrize("count", [1, 3])
def test_as_many_answers_as_questions_or_none_is_taken(form: Form, count: int) -> None:
    answers: object = {name: {} for name in names(count)} if form is SYSTEM_ONE else [{}] * count
    content = json.dumps({"answers": answers}).encode()
    with pytest.raises(RemoteError, match="the wrong questions"):
        answers_of(Reply(200, content, "", "http://h/v1"), form, [ASKED] * 2)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 1000), st.integers(0, 1000))
def test_tokens_are_shared_out_among_the_answers_without_a_rest(good: list[bool], read: int, written: int) -> None:
    given_ = [{"probabilities": GOOD if each_good else {}} for each_good in good]
    answers = [
        answer
        for answer in each(*given_, usage={"input_tokens": read, "output_tokens": written})
        if isinstance(answer, Answer)
    ]
    assert len(answers) == sum(good)
    if answers:
        counts = [(answer.tokens.prompt or 0, answer.tokens.generated or 0) for answer in answers]
        assert tuple(map(sum, zip(*counts, strict=True))) == (read, written)
        assert all(max(column) - min(column) <= 1 for column in zip(*counts, strict=True))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["choice", "verdict", *LABELS]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["answers", "verdict", "type", "name", "probabilities", "value", "probability", *LABELS]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.sampled_from(FORMS), JSON | st.builds(one, JSON) | st.builds(many, JSON, JSON, JSON))
@settings(max_examples=example_count(300))
def test_whatever_comes_is_a_distribution_or_an_error(form: Form, body: object) -> None:
    with contextlib.suppress(RemoteError):
        shares = read(body, form).probabilities
        assert shares is not None
        assert len(shares) == 3
        assert all(0 <= share <= 1 for share in shares)
        assert math.fsum(shares) == pytest.approx(1, abs=1e-9)


class Replaced(HttpClient):
    """Leads to a server of OpenAI's form, and later to one of System One's; the first holds back what it is asked."""

    def __init__(self) -> None:
        super().__init__(RemoteJudgeConfig("http://127.0.0.1:1", "m"))
        self.is_another_one = False
        self.held = 0
        self.gate = asyncio.Event()

    async def send(self, path: str, body: bytes | None = None) -> Reply:
        assert body is not None
        sent = json.loads(body)
        questions: Any = sent["questions"]
        if path == "systemone":
            if not self.is_another_one:
                return Reply(404, b"{}", "", "http://h")
            shares = {name: dict.fromkeys(each["criteria"], 0.5) for name, each in questions.items()}
            answers: Any = {name: {"type": "choice", "probabilities": share} for name, share in shares.items()}
        else:
            if "Water" not in str(sent["input"]):
                self.held += 1
                await self.gate.wait()
            labels = [choice["value"] for choice in questions[0]["choices"]]
            given = [{"value": label, "probability": 1 / len(labels)} for label in labels]
            answers = [{"type": "choice", "name": questions[0]["name"], "probabilities": given}]
        return Reply(200, json.dumps({"answers": answers}).encode(), "", "http://h")


async def test_an_answer_is_read_in_the_form_in_which_it_was_asked_for() -> None:
    """A probe that found the other form meanwhile made it unreadable."""
    client = Replaced()
    server = DecisionServer(client, "m")
    await server.find_out()
    need = about("x")
    asking = asyncio.create_task(server.ask([Question(need.prompt, options=need.options)]))
    await eventually(lambda: client.held == 1)
    client.is_another_one = True
    await server.probe()
    client.gate.set()
    assert (await asking)[0].probabilities == (1 / 3,) * 3
    await server.close()
