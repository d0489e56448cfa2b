"""Merging of needs: every text once, with its strongest tier, and everyone gets the rows of their own texts."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine, token_vectors

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import Tier, Vectors
from gradewire_server.scoring.calls import EmbedCall, ProgramRun, TokensCall

TEXTS = st.lists(st.sampled_from([f"text {i}" for i in range(9)]), max_size=5)
NEED = st.tuples(TEXTS, st.sampled_from(list(Tier)))
ROUNDS = st.lists(st.lists(NEED, min_size=1, max_size=3), min_size=1, max_size=6)


def fill(call: EmbedCall | TokensCall, rounds: list[list[tuple[list[str], Tier]]]) -> list[ProgramRun[int, None]]:
    jobs = []
    for key, needs in enumerate(rounds):
        job: ProgramRun[int, None] = ProgramRun(key, program=iter(()))  # type: ignore[arg-type] # never run here
        job.answers = [Failure(Status.INTERNAL, "awaited")] * len(needs)
        job.missing = len(needs)
        for slot, (texts, tier) in enumerate(needs):
            call.add(job, slot, texts, tier)
        jobs.append(job)
    return jobs


@given(ROUNDS)
async def test_everyone_gets_the_vectors_of_their_own_texts(rounds: list[list[tuple[list[str], Tier]]]) -> None:
    engine = HashEngine()
    call = EmbedCall("hash")
    jobs = fill(call, rounds)
    await call.ask(engine.ports, deadline_s=None)
    assert list(call.deliver()) == jobs
    for job, needs in zip(jobs, rounds, strict=True):
        for answer, (texts, _) in zip(job.answers, needs, strict=True):
            assert isinstance(answer, Vectors)
            assert answer.values.tolist() == [token_vectors(text, 64).sentence.tolist() for text in texts]
    ((_, _, texts, tiers),) = engine.calls  # HashEngine itself checks that texts are distinct
    strongest = {text: max(tier for needs in rounds for ts, tier in needs if text in ts) for text in texts}
    assert dict(zip(texts, tiers, strict=True)) == strongest
    assert set(texts) == {text for needs in rounds for ts, _ in needs for text in ts}


@given(ROUNDS, st.sets(st.sampled_from([f"text {i}" for i in range(9)]), max_size=4))
async def test_hits_count_each_jobs_distinct_texts(rounds: list[list[tuple[list[str], Tier]]], known: set[str]) -> None:
    for make in (EmbedCall, TokensCall):
        engine = HashEngine()
        if known:
            warm_up = make("hash")
            fill(warm_up, [[(sorted(known), Tier.WINDOW)]])
            await warm_up.ask(engine.ports, deadline_s=None)
        call = make("hash")
        jobs = fill(call, rounds)
        await call.ask(engine.ports, deadline_s=None)
        list(call.deliver())
        for job, needs in zip(jobs, rounds, strict=True):
            mine = {text for texts, _ in needs for text in texts}
            hits = job.cost.cache_hits
            assert (hits.memory, hits.computed) == (len(mine & known), len(mine - known))


@given(ROUNDS, st.sampled_from([f"text {i}" for i in range(9)]))
async def test_a_failed_text_fails_the_needs_that_hold_it(rounds: list[list[tuple[list[str], Tier]]], bad: str) -> None:
    for make in (EmbedCall, TokensCall):
        engine = HashEngine()
        failure = engine.failures[bad] = Failure(Status.UNAVAILABLE, "queue full")
        call = make("hash")
        jobs = fill(call, rounds)
        await call.ask(engine.ports, deadline_s=None)
        list(call.deliver())
        for job, needs in zip(jobs, rounds, strict=True):
            assert [answer is failure for answer in job.answers] == [bad in texts for texts, _ in needs]
