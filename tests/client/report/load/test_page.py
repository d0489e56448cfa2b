"""The page of a load run: a table beside each plot, the knee marked, nothing loaded, strangers' texts harmless."""

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.client.report.pages import Elements

from gradewire.report.charts import Label
from gradewire.report.load.charts import plots
from gradewire.report.load.input import LoadInput, LoadStep
from gradewire.report.load.page import render, write_load_page
from gradewire.tables import Table, Value

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"{{ 7*7 }}\u202e\x00\ud800"


def step(rate: float, p99_s: float, **changes: object) -> LoadStep:
    usual: dict[str, object] = {
        "name": f"{rate:g} calls/s",
        "rate_per_s": rate,
        "is_knee": False,
        "over_knee": False,
        "curve": [(0.0, p99_s / 20), (50.0, p99_s / 10), (75.0, p99_s / 2), (99.0, p99_s), (100.0, 2 * p99_s)],
        "p50_s": p99_s / 10,
        "p99_s": p99_s,
        "scored_per_s": min(rate, 200.0),
        "refused_share": max(0.0, 1 - 200 / rate),
        "lag_p99_s": 0.001,
    }
    return LoadStep(**usual | changes)  # type: ignore[arg-type]


def load(*steps: LoadStep, source: str = "127.0.0.1:50051", note: str = "the knee: 200 calls/s") -> LoadInput:
    return LoadInput(
        source=source,
        created="2026-11-25",
        notes=[note],
        checks=[("pass: one", True), ("FAIL: two", False), ("not measured: three", None)],
        slo_s=0.25,
        steps=steps,
        tables=[Table("All steps", ["calls/s"], [[Value(f"{each.rate_per_s:g}")] for each in steps])],
    )


STEPS = (step(100, 0.02), step(200, 0.2, is_knee=True), step(300, 0.9), step(400, 0.5, over_knee=True))


def test_every_plot_has_a_table_and_the_knee_is_marked() -> None:
    found = plots(load(*STEPS))
    assert [chart.title for chart, _ in found] == [
        "Latency by percentile",
        "Latency by offered rate",
        "Scored calls by offered rate",
        "Refused calls by offered rate",
        "How late the client sent, by offered rate",
    ]
    for chart, table in found[1:]:
        marked = [mark.text for mark in chart.marks if isinstance(mark, Label) and mark.style == "direct"]
        assert marked == ["knee"]
        assert len(table.rows) == len(STEPS)
    assert [str(row[0]) for row in found[3][1].rows] == ["100.0", "200.0", "300.0", "400.0"]
    assert [str(row[1]) for row in found[3][1].rows] == ["0.00", "0.00", "33.33", "50.00"]
    page = render(load(*STEPS)).decode()
    assert page.count('<svg viewBox="0 0 270 214" role="img"') == page.count('id="t-plot-') == 5
    assert page.count("</figcaption>") == 5


def test_of_a_rate_that_was_tried_twice_the_second_try_is_drawn() -> None:
    found = plots(load(step(100, 0.9), *STEPS))
    assert [str(row[2]) for row in found[1][1].rows] == ["20.0", "200.0", "900.0", "500.0"]


def test_percentiles_are_named_where_they_stand() -> None:
    chart = next(chart for chart, _ in plots(load(*STEPS)) if chart.title == "Latency by percentile")
    ticks = [mark.text for mark in chart.marks if isinstance(mark, Label) and mark.anchor == "middle"]
    assert ticks[:3] == ["0", "90", "99"]


def test_a_run_without_results_has_a_page_too() -> None:
    assert "Nothing was measured." in render(load()).decode()
    nothing = step(5, math.nan, curve=[], p50_s=math.nan, refused_share=1.0, scored_per_s=0.0)
    assert len(plots(load(nothing))) == 3


def test_it_loads_nothing_and_strangers_texts_do_nothing(tmp_path: Path) -> None:
    path = tmp_path / "load.html"
    hostile = [step(100 + place, 0.1, name=HOSTILE) for place in range(6)]
    size = write_load_page(path, load(*hostile, source=HOSTILE, note=HOSTILE))
    assert size == path.stat().st_size < 200_000
    found = Elements(path.read_text(encoding="utf-8"))
    assert found.names.count("script") == 1
    assert not {"img", "link", "iframe", "object"} & set(found.names)
    assert not [value for name, value in found.attributes if name in {"src", "onerror"}]
    assert not [value for name, value in found.attributes if name == "href" and not str(value).startswith("#")]


def test_drawings_are_well_formed() -> None:
    page = render(load(*STEPS)).decode()
    for part in page.split("<svg ")[1:]:
        ET.fromstring("<svg " + part.partition("</svg>")[0] + "</svg>")  # noqa: S314 - our own page
