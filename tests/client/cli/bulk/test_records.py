"""What workers tell, added up."""

import pytest

from gradewire.cli.bulk.parts import PartId
from gradewire.cli.bulk.records import PartRecord, RunTally, costs_of
from gradewire.cli.output.summary import Summary
from gradewire.cli.problems import InputError, UnreachableError
from gradewire.errors import AccessDenied, ServerUnreachable
from gradewire.results import CacheHits, MetricScore, Status

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


def test_a_record_is_read_as_it_was_written() -> None:
    record = PartRecord(
        file=1, number=2, rows=4, failed=1, **costs_of(summary_of(3)), worker="host:7", worker_cpu_s=0.5
    )
    assert PartRecord.from_json(record.to_json()) == record


def test_what_judges_took_in_all_parts_is_in_the_summary() -> None:
    tally = RunTally()
    for number, rows in enumerate((2, 3)):
        tally.add(
            PartRecord(file=0, number=number, rows=rows, **costs_of(summary_of(rows)), worker="a", worker_cpu_s=rows)
        )
    tally.add(PartRecord(file=0, number=2, rows=4, kept=3, failed=1, unanswered=1, worker="b", worker_cpu_s=0.5))
    assert (tally.rows, tally.scored, tally.failed, tally.unanswered) == (9, 6, 1, 1)
    assert tally.cpu_s == {"a": 3, "b": 0.5}
    told = summary_of(9)
    told.texts.clear()
    tally.tell(told)
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
