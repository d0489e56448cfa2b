"""The GGUF form: the same promises, on llama.cpp."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.judges.local.judge import EmbeddedJudge

from .embedded_judge import OTHER, Observed, answers, choose, generate, judging

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[tuple[EmbeddedJudge, Observed]]:
    # Two slots for three prompts (one of them the warm-up's): prefixes are thrown out and computed again.
    async with judging(form="gguf", max_prefix_states=2, max_context_tokens=512) as pair:
        yield pair


async def test_alone_in_any_order_and_in_any_company_answers_are_the_same(
    opened: tuple[EmbeddedJudge, Observed],
) -> None:
    judge, _ = opened
    needs: list[Choose | Generate] = [choose("Paris"), generate("Paris", max_tokens=3)]
    needs += [choose("no"), choose("Paris", fixed=OTHER)]
    alone = [(await answers(judge, [need]))[0] for need in needs]
    assert alone == (await answers(judge, needs[::-1]))[::-1]
    assert len({answer.probabilities for answer in alone if isinstance(answer, Choice)}) == 3


async def test_a_choice_is_a_distribution_and_knows_its_mass(opened: tuple[EmbeddedJudge, Observed]) -> None:
    (choice,) = await answers(opened[0], [choose("Paris")])
    assert sum(choice.probabilities) == pytest.approx(1.0, abs=1e-6)
    assert choice.mass is not None
    assert 0.3 < choice.mass <= 1.0


async def test_a_text_ends_at_its_limit_and_a_kept_prompt_is_reused(opened: tuple[EmbeddedJudge, Observed]) -> None:
    judge, observed = opened
    await answers(judge, [generate("Paris", max_tokens=1)])
    observed.runs.clear()
    (text,) = await answers(judge, [generate("Paris", max_tokens=3)])
    assert isinstance(text, Generated)
    assert text.generated_tokens == 3
    assert sum(run.decode_tokens for run in observed.runs) == 2
    assert sum(run.prefill_tokens + run.reused_tokens for run in observed.runs) == text.prompt_tokens


async def test_both_forms_mean_the_same(opened: tuple[EmbeddedJudge, Observed]) -> None:
    """They share weights: int8 arithmetic on one side, and on the other llama.cpp's, which depends on the processor.

    On one with AVX2 alone they are 0.17 apart, and int8 gives there what products in float64 give, bit for bit.
    """
    needs: list[Choose | Generate] = [choose("Paris"), choose("no")]
    async with judging() as (other, _):
        ours, theirs = await answers(opened[0], needs), await answers(other, needs)
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.probabilities == pytest.approx(its.probabilities, abs=0.2)
        assert mine.mass == pytest.approx(its.mass, abs=0.15)
        assert mine.prompt_tokens == its.prompt_tokens
