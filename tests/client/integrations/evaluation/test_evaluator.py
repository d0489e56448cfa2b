import asyncio
import copy
import importlib
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.client.small_server import Fault, SmallServer
from tests.support.servers.server_process import ServerProcess

from gradewire import (
    Client,
    CorrectnessParts,
    DeadlineExceeded,
    InvalidRequest,
    JudgeParts,
    MetricScore,
    MissingExtra,
    NotReady,
    Overloaded,
    Provenance,
    ScoreWarning,
    ServerFault,
    ServerUnreachable,
    Status,
)
from gradewire.integrations.evaluation import AnswerEvaluator, Evaluation, close_connections
from gradewire.integrations.evaluation.evaluator import shared_client
from gradewire.rewards import Extraction

LINE = "correctness/2?model=m"
PROVENANCE = Provenance(name="correctness", version=2, model="m", model_digest="a" * 64, line=LINE)


def scored(score: float, *, correct: bool | None, **fields: object) -> Evaluation:
    result = MetricScore(score=score, status=Status.OK, correct=correct, provenance=PROVENANCE, **fields)  # type: ignore[arg-type]
    return Evaluation.of_score("correctness", result)


@pytest.mark.parametrize(
    ("correct", "warnings", "label"),
    [
        (True, (), "right"),
        (False, (), "wrong"),
        (True, (ScoreWarning.UNCERTAIN,), "uncertain"),
        (False, (ScoreWarning.UNCERTAIN, ScoreWarning.TRUNCATED), "uncertain"),
        (True, (ScoreWarning.TRUNCATED,), "right"),
        (None, (), "none"),
    ],
)
def test_the_label_is_the_verdict_as_far_as_it_is_to_be_trusted(
    correct: bool | None,  # noqa: FBT001 - a column of the table
    warnings: tuple[ScoreWarning, ...],
    label: str,
) -> None:
    evaluation = scored(0.5, correct=correct, warnings=warnings)

    assert (evaluation.label, evaluation.correct, evaluation.value) == (label, correct, 0.5)


def test_a_score_comes_with_line_digest_and_parts_that_json_takes() -> None:
    parts = CorrectnessParts(0.9, 0.8, 0.7, 1.0, "small cat", {"length": 2.0}, uncertain=False, fit="f" * 12)
    evaluation = scored(0.934567, correct=True, parts=parts, matched_reference=1)

    told = json.loads(json.dumps(evaluation.to_dict()))
    assert (told["metric_line"], told["digest"], told["status"]) == (LINE, "a" * 64, "OK")
    assert (told["best_window"], told["features"], told["model"]) == ("small cat", {"length": 2.0}, "m")
    assert told["correct"] is True
    assert "error_type" not in told
    assert evaluation.explanation == 'correctness: 0.9346, right; matched reference 2; closest words "small cat".'


def test_a_judges_reason_is_in_the_sentence_and_is_cut() -> None:
    short = scored(1.0, correct=True, parts=JudgeParts(reason="Both name the cat."))
    long = scored(1.0, correct=True, parts=JudgeParts(reason="cat " * 1000))

    assert short.explanation == "correctness: 1, right; reason: Both name the cat."
    assert len(long.explanation) < 300
    assert long.to_dict()["reason"] == "cat " * 1000


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.OK}))
def test_without_a_score_there_is_no_value_whatever_the_status(status: Status) -> None:
    evaluation = Evaluation.of_score("smile", MetricScore(None, status, message="say why", correct=None))

    assert (evaluation.value, evaluation.scored, evaluation.label, evaluation.correct) == (None, False, "none", None)
    assert (evaluation.status, evaluation.error_type) == (status, status.value)
    assert evaluation.explanation == f"Not scored ({status}): say why"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ServerUnreachable("nobody"), Status.UNAVAILABLE),
        (Overloaded("full"), Status.UNAVAILABLE),
        (DeadlineExceeded("late"), Status.TIMEOUT),
    ],
)
def test_a_call_without_an_answer_names_its_error(
    error: ServerUnreachable | Overloaded | DeadlineExceeded, status: Status
) -> None:
    evaluation = Evaluation.of_error("smile", error)

    assert (evaluation.value, evaluation.status, evaluation.error_type) == (None, status, type(error).__name__)
    assert str(error) in evaluation.explanation


LIGHT = """
import sys
import gradewire.integrations.evaluation
heavy = {"numpy", "torch", "transformers", "inspect_ai", "lm_eval", "deepeval", "ragas", "gradewire_server"}
print(*sorted(heavy & set(sys.modules)))
"""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_connections()


def evaluator_of(server: SmallServer, metric: str = "exact_match", **settings: float) -> AnswerEvaluator:
    return AnswerEvaluator(metric, server.address, **settings)


def test_one_answer_goes_over_the_wire_with_question_and_references(small_server: SmallServer) -> None:
    evaluation = evaluator_of(small_server).evaluate(question="What?", references=["cat", "a cat"], answer="a cat")

    (request,) = small_server.script.requests
    (item,) = request.items  # type: ignore[union-attr]
    assert (item.question, list(item.references), item.prediction) == ("What?", ["cat", "a cat"], "a cat")
    assert (evaluation.value, evaluation.status) == (1.0, Status.OK)
    assert evaluation.metric_line.startswith("exact_match/1")


def test_one_reference_may_be_a_text(small_server: SmallServer) -> None:
    evaluator_of(small_server).evaluate(references="cat", answer="cat")

    assert list(small_server.script.requests[0].items[0].references) == ["cat"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("extraction", "graded"),
    [
        (None, "<think>A dog?</think> No, it is not a dog. The answer is **a cat**."),
        ("auto", "a cat"),
        ("whole", "No, it is not a dog. The answer is **a cat**."),
        ("boxed", ""),
    ],
)
def test_the_final_answer_of_a_completion_is_graded_if_asked_for(
    small_server: SmallServer, extraction: Extraction | None, graded: str
) -> None:
    completion = "<think>A dog?</think> No, it is not a dog. The answer is **a cat**."
    evaluator = AnswerEvaluator("exact_match", small_server.address, extraction=extraction)
    evaluator.evaluate(references="cat", answer=completion)
    evaluator.evaluate_all([{"references": ["cat"], "prediction": completion}])

    sent = [item.prediction for request in small_server.script.requests for item in request.items]  # type: ignore[union-attr]
    assert sent == [graded, graded]


def test_an_unknown_extraction_is_refused_at_once() -> None:
    with pytest.raises(InvalidRequest, match="extraction='last': give one of auto, boxed"):
        AnswerEvaluator(extraction="last")  # type: ignore[arg-type]


def test_a_list_is_one_call_and_keeps_its_order(small_server: SmallServer) -> None:
    items = [{"references": ["1"], "prediction": str(at % 2)} for at in range(50)]

    evaluations = evaluator_of(small_server).evaluate_all(items)

    assert [evaluation.value for evaluation in evaluations] == [float(at % 2) for at in range(50)]
    assert len(small_server.script.requests) == 1


def test_no_items_are_no_evaluations(small_server: SmallServer) -> None:
    assert evaluator_of(small_server).evaluate_all([]) == []


async def test_coroutines_say_the_same_and_run_beside_each_other(small_server: SmallServer) -> None:
    evaluator = evaluator_of(small_server)
    small_server.script.hold.clear()
    waiting = [asyncio.ensure_future(evaluator.evaluate_async(references="1", answer=str(at % 2))) for at in range(32)]
    while len(small_server.script.metadata) < 32:  # noqa: ASYNC110 - the server counts on a thread of its own
        await asyncio.sleep(0.01)
    small_server.script.hold.set()

    assert [evaluation.value for evaluation in await asyncio.gather(*waiting)] == [0.0, 1.0] * 16


def test_several_event_loops_share_one_connection(small_server: SmallServer) -> None:
    evaluator = evaluator_of(small_server)

    for _ in range(3):
        assert asyncio.run(evaluator.evaluate_async(references="1", answer="1")).value == 1.0

    assert shared_client(small_server.address, None) is shared_client(small_server.address, None)


def test_copies_and_pickles_are_equal_and_work(small_server: SmallServer) -> None:
    evaluator = evaluator_of(small_server)
    evaluator.evaluate(references="1", answer="1")

    for other in (copy.deepcopy(evaluator), pickle.loads(pickle.dumps(evaluator))):  # noqa: S301 - our own bytes
        assert other == evaluator
        assert other.evaluate(references="1", answer="0").value == 0.0


def test_address_and_token_come_from_the_environment(
    small_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", small_server.address)
    monkeypatch.setenv("GRADEWIRE_TOKEN", "secret")

    assert AnswerEvaluator(metric="exact_match").evaluate(references="1", answer="1").value == 1.0
    assert small_server.script.metadata[-1]["authorization"] == "Bearer secret"


def test_an_argument_goes_before_the_environment(small_server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", "127.0.0.1:1")

    assert evaluator_of(small_server).evaluate(references="1", answer="1").value == 1.0


def test_an_empty_answer_has_no_value_and_its_neighbour_has(small_server: SmallServer) -> None:
    small_server.script.score = lambda item: 1.0 if item.prediction else None

    empty, full = evaluator_of(small_server).evaluate_all(
        [{"references": ["1"], "prediction": ""}, {"references": ["1"], "prediction": "1"}]
    )

    assert (empty.value, empty.status, empty.error_type) == (None, Status.EMPTY_PREDICTION, "EMPTY_PREDICTION")
    assert full.value == 1.0


def test_what_cannot_be_sent_has_no_value_and_says_why(small_server: SmallServer) -> None:
    (evaluation,) = evaluator_of(small_server).evaluate_all([{"references": ["1"]}])

    assert (evaluation.value, evaluation.status) == (None, Status.INVALID_INPUT)
    assert "prediction" in evaluation.explanation


async def test_without_a_server_every_answer_says_so() -> None:
    evaluator = AnswerEvaluator("exact_match", "127.0.0.1:1", deadline_s=0.5)
    items = [{"references": ["1"], "prediction": "1"}] * 2

    for evaluations in (evaluator.evaluate_all(items), await evaluator.evaluate_all_async(items)):
        assert [evaluation.value for evaluation in evaluations] == [None, None]
        assert {evaluation.error_type for evaluation in evaluations} == {"ServerUnreachable"}


async def test_a_late_answer_is_a_timeout(small_server: SmallServer) -> None:
    small_server.script.hold.clear()

    evaluation = await evaluator_of(small_server, deadline_s=0.3).evaluate_async(references="1", answer="1")

    assert (evaluation.status, evaluation.error_type) == (Status.TIMEOUT, "DeadlineExceeded")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidRequest),
        (grpc.StatusCode.FAILED_PRECONDITION, NotReady),
        (grpc.StatusCode.UNIMPLEMENTED, ServerFault),
    ],
)
def test_what_only_the_caller_can_mend_is_raised(
    small_server: SmallServer, code: grpc.StatusCode, error: type[Exception]
) -> None:
    small_server.script.faults = [Fault(code, "no")]

    with pytest.raises(error):
        evaluator_of(small_server).evaluate(references="1", answer="1")


@pytest.mark.parametrize("metric", ["", "no_such_metric", "smile,sbert"])
def test_a_metric_that_is_none_or_several_is_refused_at_once(metric: str) -> None:
    with pytest.raises(InvalidRequest, match="metric"):
        AnswerEvaluator(metric=metric)


def test_a_cancelled_wait_ends_the_call(small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    evaluator = evaluator_of(small_server)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(evaluator.evaluate_async(references="1", answer="1"), 0.3)

    asyncio.run(give_up())
    small_server.script.hold.set()
    assert evaluator.evaluate(references="1", answer="1").value == 1.0


@pytest.mark.parametrize(
    ("module", "install"),
    [
        ("inspect_ai", "inspect_ai"),
        ("lm_eval", "lm_eval"),
        ("deepeval", "deepeval"),
        ("ragas", "ragas"),
        ("hugging_face", "evaluate"),
        ("mlflow", "mlflow"),
        ("lighteval", "lighteval"),
        ("langfuse", "langfuse"),
        ("phoenix", "arize-phoenix-evals"),
        ("weave", "weave"),
    ],
)
def test_a_missing_framework_is_named_with_what_installs_it(
    module: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Also where it is installed: None stands for a module that cannot be imported.
    for library in ("datasets", "phoenix", install):
        for name in [name for name in sys.modules if name.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtra, match=f"evaluation.{module} needs .*. Run: pip install '{install}'"):
        importlib.import_module(f"gradewire.integrations.evaluation.{module}")


def test_importing_it_loads_no_framework() -> None:
    ran = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)

    assert not ran.stdout.strip()


def test_a_real_server_and_the_engine_in_this_process_say_the_same(
    tmp_path: Path, minilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_DISK_DIRECTORY", str(tmp_path / "embedded"))
    asked = {"question": "What sleeps?", "references": ["cat"], "answer": "It is a cat."}

    with ServerProcess(tmp_path, model_repository=minilm) as server, Client(server.address) as client:
        remote = AnswerEvaluator(address=server.address).evaluate(**asked)  # type: ignore[arg-type]
        item = {"question": "What sleeps?", "references": ["cat"], "prediction": "It is a cat."}
        score = client.score([item], "correctness")[0].scores["correctness"]
        close_connections()
    monkeypatch.setenv("GRADEWIRE_SERVER", "embedded")
    embedded = AnswerEvaluator().evaluate(**asked)  # type: ignore[arg-type]

    assert remote.value == pytest.approx(score.score, abs=2e-4)
    assert embedded.value == pytest.approx(remote.value, abs=2e-4)
    assert (remote.label, remote.metric_line) == ("right", score.provenance.line if score.provenance else "")
    assert (embedded.digest, embedded.metric_line) == (remote.digest, remote.metric_line)
    assert "best_window" in remote.to_dict()
