"""What workers tell, added up."""

import json
from collections.abc import Callable
from dataclasses import replace

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.bulk.conftest import PART_ROWS, Bulk, answers
from tests.cli.conftest import answer
from tests.support.examples import example_count

from gradewire.errors import AccessDenied, DeadlineExceeded, ServerUnreachable
from gradewire.results import CacheHits, MetricScore, Status
from gradewire.testing import StubTransport
from gradewire_cli.bulk.output import input_digests
from gradewire_cli.bulk.parts import PartId, PartRows
from gradewire_cli.bulk.pipeline import file_readers
from gradewire_cli.bulk.worker import PartRecord, PartScorer, RunTally, costs_of
from gradewire_cli.problems import InputError, UnreachableError
from gradewire_cli.results.resumable_output import encode_rows
from gradewire_cli.results.summary import Summary
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Reading
from gradewire_proto.v1 import scoring_pb2

JUDGED = {"score": 0.5, "status": "OK", "prompt_tokens": 100, "generated_tokens": 7, "decided_by": "judge"}


def summary_of(rows: int) -> Summary:
    found = Summary()
    score = MetricScore(score=0.5, status=Status.OK, cache_hits=CacheHits(computed=1))
    for number in range(rows):
        output = {
            "id": str(number),
            "index": number,
            "scores": {"lave": JUDGED, "smile": {**JUDGED, "line": "smile/1"}},
        }
        found.add(output, {"lave": score, "smile": score})
    return found


def test_what_judges_took_in_all_parts_is_in_the_summary() -> None:
    tally = RunTally()
    for number, rows in enumerate((2, 3)):
        tally.add(
            PartRecord(part=PartId(0, number), rows=rows, **costs_of(summary_of(rows)), worker="a", worker_cpu_s=rows)
        )
    tally.add(PartRecord(part=PartId(0, 2), rows=4, reused=3, failed=1, unanswered=1, worker="b", worker_cpu_s=0.5))
    assert (tally.rows, tally.scored, tally.failed, tally.unanswered) == (9, 6, 1, 1)
    assert tally.cpu_s == {"a": 3, "b": 0.5}
    told = summary_of(9)
    told.texts.clear()
    tally.report(told)
    judge = told.metrics["lave"].judge
    assert judge is not None
    assert (judge.paid.rows, judge.paid.read, judge.paid.written) == (5, 500, 35)
    assert told.texts["computed"] == 5


@pytest.mark.parametrize(
    ("error", "kind"), [(ServerUnreachable("nobody"), UnreachableError), (AccessDenied("no"), InputError)]
)
def test_the_first_problem_is_the_error_of_the_command(error: Exception, kind: type[Exception]) -> None:
    tally = RunTally()
    tally.add(PartRecord.failure(PartId(0, 3), error))
    tally.add(PartRecord.failure(PartId(0, 4), AccessDenied("another")))
    assert tally.first_problem is not None
    assert tally.first_problem.part == PartId(0, 3)
    assert type(tally.first_problem.problem()) is kind
    assert str(error) in str(tally.first_problem.problem())
    assert tally.rows == 0


Make = Callable[..., Bulk]


def slow(*predictions: str) -> StubTransport:
    """A server that does not answer in time where one of these predictions is asked about."""

    def reply(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if any(item.prediction in predictions for item in request.items):
            raise DeadlineExceeded("not done in time")
        return answer(request)

    return StubTransport(reply)


def test_every_row_of_every_file_has_its_place_and_score(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2 + 1), answers(3))
    records = run.run()
    assert [record.rows for record in records] == [PART_ROWS, PART_ROWS, 1, 3]
    assert {file: (end.parts, end.rows) for file, end in run.ends.items()} == {0: (3, 9), 1: (1, 3)}
    rows = run.rows()
    assert [row["index"] for row in rows] == list(range(12))
    assert [row["scores"]["smile"]["score"] for row in rows] == pytest.approx(
        [number / 100 for number in (*range(1, 10), 1, 2, 3)]
    )
    assert rows[9]["file"] == run.source.paths[1]


def test_parts_that_are_done_are_not_scored_again(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 3))
    run.run()
    before = run.rows()
    run.store.remove(PartId(0, 1).name(answered=True))
    again = run.run()
    assert [record.part for record in again] == [PartId(0, 1)]
    assert run.rows() == before
    assert run.run() == []


def test_rows_without_an_answer_are_scored_again_and_success_beats_failure(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    records = run.run(slow("xx"))
    assert [(record.failed, record.unanswered) for record in records] == [(PART_ROWS, PART_ROWS), (0, 0)]
    assert run.store.parts() == {PartId(0, 0): False, PartId(0, 1): True}
    still = run.run(slow("xxx"))
    assert [(record.part, record.unanswered) for record in still] == [(PartId(0, 0), PART_ROWS)]
    again = run.run()
    assert [(record.part, record.unanswered, record.reused) for record in again] == [(PartId(0, 0), 0, 0)]
    assert {row["scores"]["smile"]["status"] for row in run.rows()} == {"OK"}
    assert len(run.rows()) == PART_ROWS * 2


def test_what_was_answered_in_a_part_is_kept_when_the_rest_is_tried_again(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS))
    run.run(slow("x"))
    part = PartId(0, 0)
    rows = run.rows()
    # As a server leaves it that answered one row of the four.
    good = run.rows()[1]["scores"]["smile"] | {"score": 0.75, "status": "OK"}
    good.pop("message", None)
    rows[1]["scores"]["smile"] = good
    run.store.write_part(part, encode_rows(rows, first=True), answered=False)
    records = run.run()
    assert [(record.rows, record.reused) for record in records] == [(PART_ROWS, 1)]
    assert [row["scores"]["smile"]["score"] for row in run.rows()] == pytest.approx([0.01, 0.75, 0.03, 0.04])


def test_of_a_part_that_a_kill_left_unfinished_the_whole_rows_are_kept(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS))
    run.run()
    part = PartId(0, 0)
    whole = run.store.read_part(part, answered=True)
    run.store.remove(part.name(answered=True))
    # As a file system leaves it whose move is a copy.
    run.store.write_part(part, whole[:-20], answered=False)
    (record,) = run.run()
    assert (record.error, record.rows, record.reused) == ("", PART_ROWS, PART_ROWS - 1)
    assert run.store.read_part(part, answered=True) == whole


def test_a_part_that_a_worker_answered_before_it_died_is_taken_as_it_left_it(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS))
    run.run(slow("x"))
    before = run.store.parts()
    # The worker that scores the part again is killed before it tells so: Ray gives the part to another one.
    run.run()
    (part,) = before
    assert run.store.parts() == {part: True}
    (reader,) = file_readers(run.source, [PART_ROWS], PART_ROWS, before, None)
    worker = PartScorer(run.setup(before), slow("x", "xx", "xxx", "xxxx"))
    try:
        record = worker.score(next(item for item in reader.read() if isinstance(item, PartRows)))
    finally:
        worker.close()
    assert (record.error, record.reused, record.unanswered) == ("", PART_ROWS, 0)
    assert run.store.parts() == {part: True}


def test_a_part_that_cannot_be_scored_is_a_record_and_no_file(bulk: Make) -> None:
    def refuse(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if request.items:
            raise AccessDenied("the token is not valid any more")
        return answer(request)

    run = bulk(answers(PART_ROWS))
    (record,) = run.run(StubTransport(refuse))
    assert (record.error, record.unreachable) == ("the token is not valid any more", False)
    assert "the token is not valid any more" in str(record.problem())
    assert run.store.parts() == {}


def test_a_worker_of_another_definition_scores_nothing(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS))
    (record,) = run.run(lines={"smile": "smile:v1/1?model=other@0123"})
    assert "but the run started with smile:v1/1?model=other@0123" in record.error
    assert run.store.parts() == {}


def test_workers_that_are_asked_to_stop_begin_nothing(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.store.request_stop()
    assert [(record.rows, record.error) for record in run.run()] == [(0, ""), (0, "")]
    assert run.store.parts() == {}


def test_rows_that_where_leaves_out_keep_their_numbers(bulk: Make) -> None:
    rows = [row | {"model": "a" if number % 3 else "b"} for number, row in enumerate(answers(PART_ROWS * 3))]
    run = bulk(rows, options=RowOptions(where={"model": frozenset("a")}))
    run.run()
    assert [row["index"] for row in run.rows()] == [number for number in range(PART_ROWS * 3) if number % 3]
    assert run.ends[0].rows == len(run.rows())


PARTS = st.builds(PartId, st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=example_count(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 11), min_size=1, max_size=3),
    # Of each break: parts that are lost, and letters of the row that gets no answer when it is resumed.
    breaks=st.lists(st.tuples(st.sets(PARTS, max_size=3), st.integers(1, 12)), max_size=3),
)
def test_any_breaks_give_what_a_straight_run_gives(
    bulk: Make, sizes: list[int], breaks: list[tuple[set[PartId], int]]
) -> None:
    run = bulk(*(answers(size) for size in sizes))
    run.store.remove_all()
    run.store.create()
    for lost, letters in breaks:
        run.run(slow("x" * letters))
        for part in lost:
            run.store.remove(part.name(answered=True))
            run.store.remove(part.name(answered=False))
    run.run()
    rows = run.rows()
    assert [row["index"] for row in rows] == list(range(sum(sizes)))
    assert [row["scores"]["smile"]["score"] for row in rows] == pytest.approx(
        [number / 100 for size in sizes for number in range(1, size + 1)]
    )


def test_rows_of_signed_urls_are_found_under_another_signature_and_keep_none(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS), answers(2))
    files = [run.source.paths[number] for number in (0, 1)]
    memory = fsspec.filesystem("memory")

    def signed(signature: str) -> tuple[str, ...]:
        urls = tuple(f"memory:///signed/{number}?key=SECRET{signature}" for number in (0, 1))
        for path, url in zip(files, urls, strict=True):
            memory.put_file(path, memory._strip_protocol(url))
        return urls

    run.source = replace(run.source, paths=signed("1"), reading=Reading("jsonl"))
    run.run(slow("x"))
    before, digests = run.store.parts(), input_digests(run.source)
    assert before == {PartId(0, 0): False, PartId(1, 0): False}
    # As a server leaves them that answered one row of each.
    run.source = replace(run.source, paths=signed("2"))
    assert input_digests(run.source) == digests
    for part in before:
        rows = [json.loads(line) for line in run.store.read_part(part, answered=False).splitlines()]
        good = rows[1]["scores"]["smile"] | {"score": 0.75, "status": "OK"}
        rows[1]["scores"]["smile"] = good
        run.store.write_part(part, encode_rows(rows, first=True), answered=False)
    records = run.run()
    assert [record.reused for record in records] == [1, 1]
    rows = run.rows()
    assert [row["file"] for row in rows] == ["memory:///signed/0?…"] * PART_ROWS + ["memory:///signed/1?…"] * 2
    assert "SECRET" not in json.dumps(rows)
    memory.rm("/signed", recursive=True)
