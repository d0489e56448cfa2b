"""The page holds what it must, loads nothing, stays small, and strangers' texts do nothing in it."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from tests.cli.pages.pages import Elements, page_of, simple_rows
from tests.cli.pages.samples import DATASETS, HOSTILE, MODELS, failed, random_rows, report_of, smile

from gradewire_cli.pages import page
from gradewire_cli.pages.agreement import render, write_report
from gradewire_cli.pages.agreement_input import ReportInput
from gradewire_cli.problems import InputError
from gradewire_cli.results.tables import STATISTICS
from gradewire_stats.agreement.report import AgreementReport
from gradewire_stats.agreement.statistics import ALL_STATISTICS
from gradewire_stats.annotators import annotator_agreement
from gradewire_stats.consensus import ratings_of

_ROOT = Path(__file__).parents[3]


def test_everything_said_of_an_answer_is_there() -> None:
    text = " ".join(Elements(page_of(simple_rows())).text.split())
    for expected in (
        "answers.jsonl, 2026-11-22: 4 labelled rows, 1 metric",
        "id-0 human label 1 annotators 1, none, 0.5 · nq · gpt4 · called wrong, labelled right by smile",
        "Question who was it, 0?",
        "Leonardo da Vinci ← matched by smile",
        "sentence 0.100, keyword 0.100, exact 1.000, lexical 0.100, best_window “leonardo da vinci”, bin 5; TRUNCATED",
        "Marked: the best window of smile.",
        "The best window of smile was not found.",
        "smile TIMEOUT 1 id-3: the deadline passed; send it again It was Leonardo da Vinci, they say.",
        "smile:v1/1?model=tiny@53aa51172d14&sentence_weight=0.3",
    ):
        assert expected in text
    assert "<mark>Leonardo da Vinci</mark>" in page_of(simple_rows())


def test_the_first_reference_is_marked_as_any_other() -> None:
    rows = simple_rows()
    rows[0] = replace(rows[0], results={"smile": smile(0.1, "they say", matched_reference=0)})
    text = " ".join(Elements(page_of(rows)).text.split())
    assert "Curie ← matched by smile Leonardo da Vinci Prediction" in text


@pytest.mark.parametrize("score", [0.0, -0.2])
def test_where_nothing_matched_no_reference_is_marked(score: float) -> None:
    rows = simple_rows()
    rows[0] = replace(rows[0], results={"smile": smile(score, "they say", matched_reference=0)})
    rows[1] = replace(rows[1], results={"smile": failed()})
    rows.append(replace(rows[3], id="id-4", results={"smile": smile(0.7, "they say")}))
    text = page_of(rows)
    assert 'class="matched"' in text  # of the answer that is out of order with it
    of_id_0 = text[text.index("<bdi>id-0</bdi>") :].split("</article>")[0]
    assert "matched" not in of_id_0


def test_a_row_in_order_is_not_shown_as_a_disagreement() -> None:
    assert "id-2" not in Elements(page_of(simple_rows())).text


def test_every_answer_says_whether_verdict_and_label_differ_or_the_rank_is_far_off() -> None:
    scores = {"id-0": 0.1, "id-1": 0.9, "id-2": 0.8, "id-3": 0.2}
    rows = [
        replace(row, results={**row.results, "rouge_l": {"score": scores[row.id], "status": "OK"}})
        for row in simple_rows()
    ]
    text = " ".join(Elements(page_of(rows)).text.split())
    for expected in (
        "id-0 human label 1 annotators 1, none, 0.5 · nq · gpt4 · called wrong, labelled right by smile ranked far",
        "ranked far too low by rouge_l (at 12% of the rows by score, at 75% by label)",
        "called right, labelled wrong by smile ranked far too high by rouge_l (at 88% of the rows by score, at 25% by",
        # How many of each: a metric has verdicts, or ranks.
        "smile 1 1 \N{EN DASH} \N{EN DASH} rouge_l \N{EN DASH} \N{EN DASH} 1 1",
    ):
        assert expected in text


def test_annotators_unlabelled_rows_and_notes_stand_in_the_headline() -> None:
    annotators = annotator_agreement(ratings_of([[1, 1], [0, 0], [1, 0], [0, 0]]), resamples=50)
    text = " ".join(
        Elements(page_of(simple_rows(), annotators=annotators, unlabelled=17, notes=["Made up."])).text.split()
    )
    assert "Skipped: no label 17" in text
    assert "Krippendorff's alpha, nominal 0.5" in text  # 1 - 7 * 2 / (2 * (3 * 5)) = 0.533
    assert "Cohen's kappa, annotators 1 and 2, 4 rows 0.5" in text  # p_o = 3/4, p_e = 1/8 + 3/8
    assert "more pairs" not in text
    assert "Made up." in text


def test_of_many_pairs_of_annotators_the_first_few_stand_in_the_headline() -> None:
    annotators = annotator_agreement(ratings_of([[1, 1, 0, 1, 0], [0, 0, 1, 1, 0]]), resamples=50)
    text = " ".join(Elements(page_of(simple_rows(), annotators=annotators)).text.split())
    assert text.count("Cohen's kappa, annotators") == 6
    assert "Cohen's kappa, more pairs 4, not shown" in text


def test_a_group_that_is_the_data_set_again_is_neither_offered_nor_said_twice() -> None:
    same = [replace(row, group=row.dataset) for row in simple_rows()]
    assert 'name="group"' not in page_of(same)
    assert page_of(same).count("<bdi>nq</bdi> · ") == page_of(simple_rows()).count("<bdi>nq</bdi> · ") > 0
    other = [replace(row, group="who" if row.id < "id-2" else "") for row in simple_rows()]
    offered = page_of(other, groups=[row.group for row in other])
    assert offered.count('name="group"') == 2  # for the table of cells, and for the answers


def test_every_statistic_has_a_name_and_a_meaning() -> None:
    assert set(STATISTICS) == set(ALL_STATISTICS)


def test_nothing_is_loaded_and_hostile_texts_bring_no_element() -> None:
    plain, hostile = (Elements(page_of(random_rows(60, metrics=2, hostile=given))) for given in (False, True))
    assert set(hostile.names) == set(plain.names)
    assert hostile.names.count("script") == 1
    assert not {"img", "link", "iframe", "object", "base"} & set(hostile.names)
    for name, value in hostile.attributes:
        assert not name.startswith("on")
        assert name not in {"src", "style"}
        assert name != "href" or (value or "").startswith("#")
    # They are all shown, as text; what is not seen is written out.
    for text in HOSTILE[:2] + HOSTILE[3:4]:
        assert text in hostile.text
    assert "[U+202E]gnorw[U+202C] [U+200B]hidden[U+0000][U+0007] [U+D800]" in hostile.text
    assert "characters 1 to 1,200 of 1,000,000" in hostile.text


def test_hostile_names_and_messages_bring_no_element_either() -> None:
    names = {"dataset": HOSTILE[0], "model": HOSTILE[1], "group": HOSTILE[3], "id": HOSTILE[2]}
    results = {HOSTILE[1]: failed() | {"message": HOSTILE[0]}, HOSTILE[0]: smile(0.5, HOSTILE[1], line=HOSTILE[3])}
    rows = [replace(row, **names, results=results) for row in simple_rows()[:2]]
    found = Elements(page_of(rows, source=HOSTILE[0], created=HOSTILE[1], notes=[HOSTILE[1]]))
    assert found.names.count("script") == 1
    assert "img" not in found.names


def test_the_policy_names_the_script_and_the_style_that_are_there() -> None:
    text = page_of(simple_rows())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    script, style = (re.search(rf"<{name}>(.*)</{name}>", text, re.DOTALL) for name in ("script", "style"))
    assert script
    assert style
    assert policy[1].replace("&#39;", "'") == page.policy(script[1], style[1])
    assert policy[1].startswith("default-src &#39;none&#39;;")


def test_same_input_same_bytes(tmp_path: Path) -> None:
    report = report_of(random_rows(80, metrics=2))
    size = write_report(tmp_path / "report.html", report)
    assert (tmp_path / "report.html").read_bytes() == render(report)
    assert size == (tmp_path / "report.html").stat().st_size


def test_an_uncertain_verdict_is_told_and_its_forty_features_are_not() -> None:
    rows = simple_rows()
    extra = {
        "features": {"\u202ekeyword": 0.5},
        "uncertain": True,
        "band_upper": 0.75,
        "fit": "0" * 12,
        "odd": {"\u202e": 1},
    }
    rows[0] = replace(rows[0], results={"smile": smile(0.1, "x", warnings=["UNCERTAIN"]) | extra})
    text = " ".join(Elements(page_of(rows)).text.split())
    # What a stranger's file has beside it is shown as any text: without what hides in it.
    assert "uncertain True, band_upper 0.750, odd {'\\u202e': 1}; UNCERTAIN" in text
    assert "features" not in text


def test_rows_without_a_model_are_none_and_only_the_sum_over_all_is_all() -> None:
    rows = [replace(row, model="") if place % 5 == 0 else row for place, row in enumerate(random_rows(60, metrics=1))]
    text = page_of(rows)
    table = text[text.index('id="t-cells"') :].split("</table>")[0]
    heads = [[head.split("</bdi>")[0] for head in line.split("<bdi>")[2:]] for line in table.split("<tr")[2:]]
    models = ["(none)", *sorted(MODELS[1:])]
    assert heads == [
        *([dataset, model] for dataset in DATASETS for model in models),
        *([dataset, "all"] for dataset in DATASETS),
        *(["all", model] for model in models),
        ["all", "all"],
    ]
    assert text.count('<option value="(none)">') == 2
    # A model that is called so is another.
    named = [replace(row, model=row.model if row.model != "fid" else "(none)") for row in rows]
    assert '<option value="(none) (2)">' not in page_of(named)
    both = [replace(row, model="(none)") if row.model == "gpt4" else row for row in rows]
    assert '<option value="(none) (2)">' in page_of(both)


def test_means_over_some_of_the_cells_and_draws_are_said() -> None:
    # In one of the two data sets the metric gives every row the same score: no correlation there.
    rows = [
        replace(
            row, model="", results={"smile": row.results["smile"] | ({"score": 0.0} if row.dataset == "nq" else {})}
        )
        for row in random_rows(200, metrics=1, hostile=False)
    ]
    text = " ".join(Elements(page_of(rows, resamples=20)).text.split())
    overview, cells = text.split("What the columns mean")
    assert overview.count("over 1 of 2 cells") == 4  # Pearson and τ-b, in the chart and in the table
    assert "over 1 of 2 cells" not in cells
    assert "at most 1 (interval from 20 draws)" in cells


def test_small_cells_show_all_rows_with_their_intervals_and_only_intervals_that_are_there_are_announced() -> None:
    # Six questions in each of two cells are too few for an interval; over all rows they are enough.
    rows = [replace(row, model="") for row in random_rows(80, metrics=1, hostile=False)]
    text = " ".join(Elements(page_of(rows[:60], resamples=20)).text.split())
    overview = text.split("What the columns mean")[0]
    assert "Pearson of each metric, all rows, with its 95 % interval" in overview
    assert "mean of the cells; if the mean has no interval, also the value over all rows with its 95 % int" in overview
    assert re.search(r"0\.\d{3} all rows 0\.\d{3} \(", overview)
    bare = " ".join(Elements(page_of(rows[:30], resamples=20)).text.split())
    assert "Pearson of each metric, mean of the cells" in bare
    assert "95 % interval" not in bare


def test_labels_outside_0_to_1_have_no_roc_and_no_side() -> None:
    rows = [replace(row, label=row.label * 10) for row in random_rows(60, metrics=1)]
    text = page_of(rows)
    assert "No ROC curve, because it needs labels in [0, 1]" in text
    assert "No calibration curve" in text
    assert 'class="label "' in text


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_alone_and_all_rows_failed_are_a_page_too(label: float) -> None:
    rows = [replace(row, label=label) for row in random_rows(20, metrics=1, hostile=False)]
    assert "No ROC curve" in page_of(rows)
    lost = [replace(row, results={"smile": failed("MODEL_UNAVAILABLE")}) for row in rows]
    text = page_of(lost)
    assert "No row has a score." in text
    assert "MODEL_UNAVAILABLE" in text


def test_scores_of_other_ranges_have_axes_of_their_own() -> None:
    rows = random_rows(60, metrics=1, hostile=False)
    scores = [20 * row.results["smile"]["score"] - 15 for row in rows]
    wide = [
        replace(row, results={"cider": {"score": score, "status": "OK"}})
        for row, score in zip(rows, scores, strict=True)
    ]
    text = page_of(wide)
    assert "scores outside [0, 1]: no ECE" in text
    assert ">\u22125<" in text
    assert ">0<" in text


def test_rows_and_labels_that_do_not_belong_together_are_refused() -> None:
    report = report_of(simple_rows())
    with pytest.raises(ValueError, match="3 rows but 4 labels"):
        ReportInput(
            source="", created="", rows=report.rows[:3], judged=report.judged, agreement=AgreementReport(metrics=[])
        )


def test_without_jinja_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install 'gradewire\[agree\]'"):
        write_report(tmp_path / "report.html", report_of(simple_rows()))
    assert not list(tmp_path.iterdir())


def test_the_wheel_carries_the_templates() -> None:
    carried = {Path(file.distribution_path) for file in WheelBuilder(str(_ROOT)).recurse_included_files()}
    folder = Path("gradewire_cli/pages/templates")
    assert {file.name for file in carried if file.parent == folder} == {
        "common.js",
        "label.css",
        "label.html",
        "label.js",
        "page.html",
        "pieces.html",
        "report.css",
        "report.js",
    }
