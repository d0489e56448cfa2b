"""What the span of a judge's call says: the model, where the answer came from, what it took; never what was said."""

from opentelemetry.sdk.trace import ReadableSpan
from tests.support.kept_spans import KeptSpans, attributes_of

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.requests.judging import await_judge

NEED = Choose("tiny@0123", JudgePrompt((), lead="a user's words"), ("yes", "no"))


async def span_of(need: Choose | Generate, answer: Choice | Generated | Failure, source: AnswerSource) -> ReadableSpan:
    async def replied() -> JudgeReply[Choice | Generated]:
        return JudgeReply(answer, source, Timing(queue_s=0.25, inference_s=0.5 if answer_computed else 0.0))

    answer_computed = source is AnswerSource.COMPUTED
    kept = KeptSpans()
    with kept.call:
        await await_judge(need, replied())  # type: ignore[type-var] # either kind of answer
    return kept.named("judge")


async def test_a_computed_answer_has_tokens_and_times() -> None:
    span = await span_of(NEED, Choice((0.5, 0.5), None, 12, generated_tokens=3), AnswerSource.COMPUTED)

    assert attributes_of(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "tiny",
        "gradewire.answered_from.computed": 1,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gradewire.queue_s": 0.25,
        "gradewire.inference_s": 0.5,
    }
    assert span.status.is_ok


async def test_what_a_cache_knew_took_no_time() -> None:
    need = Generate("", NEED.prompt, 16)
    span = await span_of(
        need, Generated("said", complete=True, prompt_tokens=None, generated_tokens=None), AnswerSource.DISK
    )

    assert attributes_of(span) == {"gen_ai.operation.name": "chat", "gradewire.answered_from.disk": 1}


async def test_a_failure_is_its_status() -> None:
    span = await span_of(NEED, Failure(Status.TIMEOUT, "a user's words"), AnswerSource.COMPUTED)

    assert not span.status.is_ok
    assert attributes_of(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "tiny",
        "error.type": "TIMEOUT",
    }
