"""The page of a load run: the knee marked, nothing loaded, strangers' texts harmless."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.cli.bench.load.samples import counts_of, step_of
from tests.cli.pages.pages import Elements

from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.transport import Endpoint
from gradewire_cli.bench.load.content import MIXES
from gradewire_cli.bench.load.output import latency_chart, load_page, step_table
from gradewire_cli.bench.load.processes import LoadOptions
from gradewire_cli.bench.load.run import Check, Knee, LoadResult, Step
from gradewire_cli.pages.charts import Chart, Dot, Label
from gradewire_cli.pages.page import write_page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"{{ 7*7 }}\u202e\x00\ud800"


def step(rate: float, p99_s: float, **changes: Any) -> Step:
    return step_of(counts_of(p99_s), rate_per_s=rate, **changes)


def result(*steps: Step, knee_per_s: float | None = 200) -> LoadResult:
    checks = [Check("one", "1", "1", holds=True), Check("two", "1", "2", holds=False)]
    return LoadResult(list(steps), None if knee_per_s is None else Knee(knee_per_s), checks)


def dots_of(chart: Chart) -> list[Dot]:
    return [mark for mark in chart.marks if isinstance(mark, Dot) and mark.style == "dot first"]


STEPS = (step(100, 0.02), step(200, 0.2), step(300, 0.9), step(400, 0.5, over_knee=True))


def page_of(found: LoadResult, path: Path, *, address: str = "127.0.0.1:50051", note: str = "the knee") -> str:
    given = LoadOptions(
        endpoint=Endpoint(address),
        metrics=choose_metrics("exact_match", MetricDefaults()),
        rows=MIXES["short"],
        batch=1,
        deadline_s=1.0,
        wait_s=1.0,
        seed=0,
        objective=STEPS[0].objective,
    )
    write_page(path, [load_page(found, given, step_table(found), [note])])
    return path.read_text(encoding="utf-8")


def test_the_chart_has_the_knee_the_objective_and_a_point_for_each_rate(tmp_path: Path) -> None:
    chart = latency_chart(result(*STEPS))
    assert chart is not None
    labels = [mark.text for mark in chart.marks if isinstance(mark, Label)]
    assert {"knee", "SLO"} <= set(labels)
    assert [text for text in labels if text in {"1", "10", "100", "1000", "10000"}] == ["10", "100", "1000"]
    # Between 10 ms at 170 and 1000 ms at 12, in the logarithm.
    assert [dot.y for dot in dots_of(chart)] == [146.2, 67.2, 15.6, 35.8]
    page = page_of(result(*STEPS), tmp_path / "load.html")
    drawing = page.partition("<svg ")[2].partition("</svg>")[0]
    ET.fromstring(f"<svg {drawing}</svg>")  # noqa: S314 - our own page
    assert page.partition('id="steps"')[2].count("<tr") == 1 + len(STEPS)
    assert "FAIL: two" in page.partition('class="broken"')[2]


def test_of_a_rate_that_was_tried_twice_the_second_try_is_drawn() -> None:
    chart = latency_chart(result(step(100, 0.9), *STEPS))
    assert chart is not None
    assert dots_of(chart)[0].text == "100 calls/s: p99 20"


def test_a_run_without_results_has_a_page_too(tmp_path: Path) -> None:
    nothing = step_of(counts_of(0.1, scored=0, failed=5))
    assert "Nothing was measured." in page_of(result(nothing, knee_per_s=None), tmp_path / "load.html")


def test_it_loads_nothing_and_strangers_texts_do_nothing(tmp_path: Path) -> None:
    found = replace(result(*STEPS), checks=[Check(HOSTILE, HOSTILE, HOSTILE, holds=False)])
    page = Elements(page_of(found, tmp_path / "load.html", address=HOSTILE, note=HOSTILE))
    assert page.names.count("script") == 1
    assert not {"img", "link", "iframe", "object"} & set(page.names)
    assert not [value for name, value in page.attributes if name in {"src", "onerror"}]
    assert not [value for name, value in page.attributes if name == "href" and not str(value).startswith("#")]
