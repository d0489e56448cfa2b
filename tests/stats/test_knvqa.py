"""Tables of verdicts: KNVQA-Eval's and SMILE's third, against printed figures, by hand, and with failures."""

import math

import numpy as np
import pytest

from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.knvqa import KNVQA_STATISTICS, knvqa_table
from gradewire_stats.model_accuracy import model_accuracy

NAN = math.nan
# KNVQA-Eval, OK-VQA subset, in percent: table 5 (human rate), table 3 (precision, recall) and table 2, left (accuracy);
# models in the order LLaVA, BLIP, InstructBLIP, MiniGPT-4; None where the paper prints a dash.
HUMAN = [82.0, 48.6, 83.0, 50.5]
PRINTED = {
    "VQA score": [(94.2, 65.5, 68.4), (95.0, 58.2, 78.2), (96.3, 59.2, 64.2), (89.8, 62.8, 77.6)],
    "lexical matching": [(92.3, 81.8, 79.5), (92.4, 78.0, 86.2), (95.0, 76.3, 77.0), (85.9, 81.0, 83.7)],
    "BERTScore": [(84.0, 74.0, 67.1), (63.1, 78.6, 67.3), (87.4, 70.5, 67.1), (64.3, 77.8, 67.0)],
    "GPT-3.5": [(94.6, 61.5, 65.5), (93.0, 76.7, 85.9), (97.3, 73.6, 76.4), (93.1, 61.2, 78.1)],
    "GPT-3.5 step by step": [(90.6, 82.2, 78.4), None, None, None],
    "GPT-3.5 reasons": [(96.0, 35.2, 45.7), None, None, None],
    "GPT-4": [(93.9, 84.6, 82.9), None, (94.3, 85.9, 84.0), (87.3, 84.6, 86.0)],
    "LLaVA 7b": [(87.4, 95.2, 84.8), (60.1, 94.7, 66.8), (90.5, 91.8, 85.2), (60.3, 95.0, 65.9)],
    "LLaVA 13b": [(88.8, 91.7, 83.7), (69.0, 84.8, 74.1), (93.4, 81.9, 80.2), (70.0, 86.1, 74.4)],
}
CASES = [
    pytest.param(human, *figures, id=f"{evaluator} on model {place}")
    for evaluator, row in PRINTED.items()
    for place, (human, figures) in enumerate(zip(HUMAN, row, strict=True))
    if figures
]


def accuracy_from(precision: float, recall: float, human_rate: float) -> float:
    """Accuracy that follows from printed figures.

    Of all answers, h are right; the evaluator finds r of these, and for each it finds it takes (1 - p) / p wrong ones
    for right: accuracy = 1 - h (1 - r) - h r (1 - p) / p.

    Args:
        precision: p, above 0 to 1.
        recall: r, 0 to 1.
        human_rate: h, share of right answers, 0 to 1.

    Raises:
        ValueError: A figure is out of range, or no accuracy has them all.
    """
    if not 0 < precision <= 1 or not 0 <= recall <= 1 or not 0 <= human_rate <= 1:
        raise ValueError(
            f"precision {precision}, recall {recall} and human rate {human_rate} must be shares, not percent"
        )
    missed, taken = human_rate * (1 - recall), human_rate * recall * (1 - precision) / precision
    # More wrong answers taken for right than there are wrong answers; the margin is rounding of printed figures.
    if taken > 1 - human_rate + 0.01:
        raise ValueError(f"precision {precision} and recall {recall} cannot be reached at a human rate of {human_rate}")
    return 1 - missed - taken


@pytest.mark.parametrize(("human", "precision", "recall", "accuracy"), CASES)
def test_printed_accuracy_follows_from_printed_precision_recall_and_human_rate(
    human: float, precision: float, recall: float, accuracy: float
) -> None:
    # Every printed figure may be off by 0.05; the corners of that box bound what accuracy may be printed.
    reached = [
        100 * accuracy_from((precision + p) / 100, (recall + r) / 100, (human + h) / 100)
        for p in (-0.05, 0.05)
        for r in (-0.05, 0.05)
        for h in (-0.05, 0.05)
    ]
    assert min(reached) - 0.05 <= accuracy <= max(reached) + 0.05


def test_accuracy_from_equals_counting_and_refuses_what_cannot_be() -> None:
    # 3 found of 4 right ones, 1 wrong one taken for right, 2 wrong ones seen: 5 of 7 verdicts are right.
    assert accuracy_from(3 / 4, 3 / 4, 4 / 7) == pytest.approx(5 / 7)
    with pytest.raises(ValueError, match="must be shares, not percent"):
        accuracy_from(94.2, 65.5, 82.0)
    with pytest.raises(ValueError, match="cannot be reached"):
        accuracy_from(0.1, 1.0, 0.9)


def verdicts(
    columns: dict[str, list[float]], labels: list[float], models: list[str], datasets: list[str]
) -> JudgedRows:
    given = {name: np.array(column) for name, column in columns.items()}
    scores = {name: np.where(np.isnan(column), NAN, column / 2) for name, column in given.items()}
    return JudgedRows(scores, given, np.array(labels), datasets, models, [f"q{row}" for row in range(len(labels))])


def test_knvqa_table_by_hand() -> None:
    rows = verdicts(
        {"e": [1, 1, 1, 0, 0, 0, 1, NAN], "f": [1, 0, 0, 0, 0, 1, 1, 1], "none": [NAN] * 8},
        [1, 1, 0, 1, 0, 1, 1, 1],
        ["x", "x", "x", "x", "x", "y", "y", "y"],
        [""] * 8,
    )
    table = knvqa_table(rows, lengths_words=np.array([2.0, 4, 6, NAN, 4, 10, 20, 30]), resamples=50)
    assert [(model.model, model.rows, model.human_rank, model.mean_length_words) for model in table.models] == [
        ("x", 5, 2, 4.0),
        ("y", 3, 1, 20.0),
    ]
    assert [model.human_rate.value for model in table.models] == pytest.approx([3 / 5, 1.0])
    lines = {(line.evaluator, line.model): line for line in table.lines}
    # e on x: found 2 of 3 right ones, took 1 of 2 wrong ones for right.
    values = {name: lines["e", "x"].estimates[name].value for name in KNVQA_STATISTICS}
    assert values == pytest.approx(
        {
            "accuracy": 3 / 5,
            "f1": 2 / 3,
            "macro_f1": (2 / 3 + 1 / 2) / 2,
            "precision": 2 / 3,
            "recall": 2 / 3,
            "positive_rate": 3 / 5,
        }
    )
    ranks = {key: (line.rank, line.model_rank) for key, line in lines.items()}
    assert ranks == {
        ("e", "x"): (1, 1),
        ("f", "x"): (2, 2),
        ("none", "x"): (None, None),
        ("e", "y"): (2, 2),
        ("f", "y"): (1, 1),
        ("none", "y"): (None, None),
    }
    assert (lines["e", "y"].rows, lines["e", "y"].failed) == (2, 1)
    # People's figures beside e: of y it judged two answers, of 10 and 20 words, and people call both right.
    human = {key: (line.human_rate.value, line.human_rank, line.mean_length_words) for key, line in lines.items()}
    assert human["e", "x"] == (pytest.approx(3 / 5), 2, 4.0)
    assert human["e", "y"] == (pytest.approx(1.0), 1, 15.0)
    assert human["none", "x"] == (pytest.approx(NAN, nan_ok=True), None, pytest.approx(NAN, nan_ok=True))
    assert (lines["none", "x"].rows, lines["none", "x"].failed) == (0, 5)
    assert math.isnan(lines["none", "x"].estimates["accuracy"].value)


def test_equal_positive_rates_share_the_better_rank() -> None:
    rows = verdicts({"a": [1, 0], "b": [0, 1], "c": [0, 0]}, [1, 0], ["x", "x"], ["", ""])
    assert [line.rank for line in knvqa_table(rows, resamples=5).lines] == [1, 1, 3]


def test_model_accuracy_by_hand() -> None:
    rows = verdicts(
        {"over": [1, 1, 1, 1, 1, 0], "under": [0, 0, 0, NAN, 1, 0]},
        [1, 0, 0.5, 1, 1, 0],
        ["x"] * 6,
        ["one"] * 4 + ["two"] * 2,
    )
    table = model_accuracy(rows, resamples=100)
    assert [(cell.dataset, cell.model, cell.rows) for cell in table.cells] == [("one", "x", 4), ("two", "x", 2)]
    assert [cell.human.value for cell in table.cells] == pytest.approx([2.5 / 4, 1 / 2])
    over, under = table.evaluators
    assert [cell.accuracy.value for cell in over.cells] == pytest.approx([1.0, 0.5])
    assert [cell.deviation.value for cell in over.cells] == pytest.approx([1.5 / 4, 0.0])
    assert over.mean_absolute_deviation.value == pytest.approx(1.5 / 8)
    # `under` failed on a row that people call right: its deviation is from the three rows that it judged.
    assert [(cell.judged, cell.failed) for cell in under.cells] == [(3, 1), (2, 0)]
    assert [cell.deviation.value for cell in under.cells] == pytest.approx([-1.5 / 3, 0.0])
    assert under.mean_absolute_deviation.value == pytest.approx(1.5 / 6)


def test_the_interval_of_the_mean_size_is_that_of_sizes() -> None:
    # Every third answer of either set is called right by one side alone: deviations of -1/3, so that draws without
    # their size would all lie below 0, and the size outside of its interval.
    labels = [1.0, 1.0, 0.0] * 20
    rows = verdicts({"under": [0.0, 1.0, 0.0] * 20}, labels, ["x"] * 60, ["one"] * 30 + ["two"] * 30)
    size = model_accuracy(rows, resamples=200).evaluators[0].mean_absolute_deviation
    assert size.value == pytest.approx(1 / 3)
    assert 0 < size.low < size.value < size.high < 1


def test_mean_size_of_the_deviation_gives_smiles_printed_overall() -> None:
    # SMILE, table 3: deviations in nine data sets and the printed overall. Left out are exact match and sBERT, whose
    # rows give .61 and .53 where .53 and .52 are printed.
    printed = {
        "easy match": ([0.04, -0.12, -0.20, -0.04, 0.00, 0.16, -0.08, -0.12, -0.04], 0.09),
        "ROUGE-L": ([-0.64, -0.48, -0.56, -0.40, -0.24, -0.72, -0.76, -0.40, -0.64], 0.54),
        "METEOR": ([-0.64, -0.48, -0.56, -0.40, -0.20, -0.80, -0.68, -0.28, -0.52], 0.51),
        "BERTScore": ([0.36, 0.52, 0.44, 0.60, 0.76, 0.20, 0.08, 0.12, 0.20], 0.36),
        "SMILE": ([-0.04, 0.16, 0.20, -0.04, 0.04, -0.12, -0.04, 0.00, 0.00], 0.07),
    }
    human = [0.64, 0.48, 0.56, 0.40, 0.24, 0.80, 0.92, 0.88, 0.80]
    # 25 answers a data set, as their table's steps of .04 tell.
    answers = 25
    labels = [float(row < round(rate * answers)) for rate in human for row in range(answers)]
    columns = {
        name: [
            float(row < round((rate + deviation) * answers))
            for rate, deviation in zip(human, deviations, strict=True)
            for row in range(answers)
        ]
        for name, (deviations, _) in printed.items()
    }
    datasets = [f"set {number}" for number in range(9) for _ in range(answers)]
    table = model_accuracy(verdicts(columns, labels, [""] * len(labels), datasets), resamples=5)
    assert [cell.human.value for cell in table.cells] == pytest.approx(human)
    for found, (deviations, overall) in zip(table.evaluators, printed.values(), strict=True):
        assert [cell.deviation.value for cell in found.cells] == pytest.approx(deviations)
        assert found.mean_absolute_deviation.value == pytest.approx(overall, abs=0.005)


def test_labels_beyond_one_have_no_accuracy() -> None:
    rows = verdicts({"e": [1, 0, 1]}, [1, 5, 3], ["x"] * 3, [""] * 3)
    table, models = knvqa_table(rows, resamples=5), model_accuracy(rows, resamples=5)
    assert math.isnan(table.models[0].human_rate.value)
    assert table.models[0].human_rank is None
    assert math.isnan(models.cells[0].human.value)
    assert math.isnan(models.evaluators[0].mean_absolute_deviation.value)


def test_with_30_percent_failed_the_tables_are_those_of_the_rest() -> None:
    random = np.random.default_rng(4)
    count = 200
    labels = random.choice([0.0, 1.0], size=count)
    column = np.where(random.random(count) < 0.8, labels, 1 - labels)
    column[random.random(count) < 0.3] = NAN
    names = [["x", "y"][row % 2] for row in range(count)]
    kept = np.flatnonzero(~np.isnan(column))
    rest = verdicts(
        {"e": column[kept].tolist()}, labels[kept].tolist(), [names[row] for row in kept], ["set"] * len(kept)
    )
    # A failed answer is empty, and it is the right ones of x that fail: people's figures move with them.
    labels[np.isnan(column) & (np.array(names) == "x")] = 1.0
    words = np.where(np.isnan(column), 0.0, random.integers(1, 30, size=count))
    rows = verdicts({"e": column.tolist()}, labels.tolist(), names, ["set"] * count)
    whole = knvqa_table(rows, lengths_words=words, resamples=5)
    part = knvqa_table(rest, lengths_words=words[kept], resamples=5)
    lines, of_rest = whole.lines, part.lines
    for model, line, other, alone in zip(whole.models, lines, of_rest, part.models, strict=True):
        assert (line.rows, other.failed) == (other.rows, 0)
        assert line.human_rate.value == pytest.approx(alone.human_rate.value)
        assert line.human_rank == alone.human_rank
        assert line.mean_length_words == pytest.approx(alone.mean_length_words)
        assert model.mean_length_words == pytest.approx(alone.mean_length_words)
        assert model.rows == line.rows + line.failed
        for name in KNVQA_STATISTICS:
            assert line.estimates[name].value == pytest.approx(other.estimates[name].value)
    assert sum(line.failed for line in lines) == count - len(kept)
    assert whole.models[0].human_rate.value > lines[0].human_rate.value
    found, other = (model_accuracy(each, resamples=5).evaluators[0] for each in (rows, rest))
    assert [cell.deviation.value for cell in found.cells] == pytest.approx(
        [cell.deviation.value for cell in other.cells]
    )
    for cell in found.cells:
        assert cell.deviation.value == pytest.approx(cell.accuracy.value - cell.human.value)
    assert found.mean_absolute_deviation.value == pytest.approx(other.mean_absolute_deviation.value)
    assert sum(cell.failed for cell in found.cells) == count - len(kept)
