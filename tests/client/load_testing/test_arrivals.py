import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gradewire.errors import InvalidRequest
from gradewire.load_testing.arrivals import constant, poisson, replayed


def test_gaps_of_poisson_arrivals_are_exponential_and_repeat_with_the_seed() -> None:
    offsets = poisson(200.0, 50.0, seed=3)
    assert abs(len(offsets) - 10_000) < 5 * 100  # five standard deviations
    assert stats.kstest(np.diff(offsets), "expon", args=(0, 1 / 200)).pvalue > 0.01
    assert (np.diff(offsets) >= 0).all()
    assert offsets[-1] < 50
    assert np.array_equal(offsets, poisson(200.0, 50.0, seed=3))
    assert not np.array_equal(offsets[:10], poisson(200.0, 50.0, seed=4)[:10])
    # Counts of a second vary as much as their mean.
    counts = np.bincount(offsets.astype(int), minlength=50)
    assert 0.5 < counts.var() / counts.mean() < 1.8


def test_constant_arrivals_are_even_and_at_least_one() -> None:
    assert constant(4.0, 2.0).tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert constant(0.01, 1.0).tolist() == [0.0]


def test_arrivals_are_replayed_from_a_list_of_times(tmp_path: Path) -> None:
    path = tmp_path / "times.txt"
    path.write_text("100.5\n\n100\n103.25\n")
    assert replayed(path).tolist() == [0, 0.5, 3.25]
    assert replayed(path, speed=2).tolist() == [0, 0.25, 1.625]


def test_arrivals_are_replayed_from_a_request_log(tmp_path: Path) -> None:
    def line(time: str, duration_s: float, method: str = "gradewire.v1.Scoring/Score", event: str = "call") -> str:
        return json.dumps({"time": time, "event": event, "method": method, "duration_s": duration_s})

    path = tmp_path / "requests.log"
    path.write_text(
        "\n".join(
            [
                json.dumps({"time": "2026-11-25T10:00:00.000Z", "level": "info", "event": "serving on port 50051"}),
                "gradewire is ready on 127.0.0.1:50051",
                line("2026-11-25T10:00:02.000Z", 0.5),
                line("2026-11-25T10:00:01.700Z", 0.2, "gradewire.v1.Scoring/ScoreStream"),
                line("2026-11-25T10:00:05.000Z", 0.1, "gradewire.v1.Models/List"),
                line("2026-11-25T10:00:04.000Z", 0.25),
            ]
        )
    )
    # They arrived at 1.5, 1.5 and 3.75 s.
    assert replayed(path).tolist() == pytest.approx([0, 0, 2.25])


@pytest.mark.parametrize("text", ["", "soon", "1\nnan", "{}\n{", '{"event": "call"}'])
def test_a_file_of_something_else_is_refused_by_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "times.txt"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=r"times\.txt"):
        replayed(path)
