"""SMILE worked out on paper: texts are unit vectors in the plane, so every cosine is that of an angle."""

import math
from typing import Any

import pytest
from tests.support.engines.programs import Table, at

from gradewire_proto.choices import SmilePreset, SyntheticMode
from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, Calibration, ModelMetadata, ParameterError
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.metrics.smile.metric import Smile

# N(y) = "a red cat here"; windows of 1: a, red, cat, here; of 2: "a red", "red cat", "cat here".
ITEM = Item("1", "What is it?", ("red dogs", "Kittens"), "A red cat here.")
VECTORS = {
    "A red cat here.": at(0),
    "red dogs": at(60),  # cos 1/2
    "Kittens": at(90),  # cos 0
    "red dog": at(0),
    "a red": at(60),  # cos 1/2 with "red dog": its best window
    "red cat": at(180),
    "cat here": at(90),
    "kitten": at(30),
    "a": at(150),
    "red": at(120),
    "cat": at(90),  # cos 1/2 with "kitten": its best window
    "here": at(210),
}


def fitted(threshold: float, sentence_weight: float = 0.3, preset: str = "v1", synthetic: str = "none") -> Calibration:
    parameters = (("preset", preset), ("synthetic", synthetic))
    return Calibration("smile", 1, parameters, threshold, sentence_weight, "by hand")


def smile(item: Item = ITEM, calibration: Calibration | None = None, *, table: Table | None = None, **kw: Any) -> Any:
    table = table or Table(VECTORS)
    metadata = NO_MODEL if calibration is None else ModelMetadata((calibration,))
    return table.run(Smile().score(item, SmileParameters(**kw).resolved(metadata), metadata))


def test_v1() -> None:
    # red dogs: s = (1 + 1/2)/2 = .75, k = .75, m = 1 of 2 words, l = .625: .3·.75 + .7·.625 = .6625, bin = floor(3.975)
    # Kittens:  s = .5, k = .75, m = 0, l = .375, score = .15 + .2625 = .4125
    result = smile()
    assert result.status is Status.OK
    assert result.score == pytest.approx(0.6625, abs=1e-6)
    assert result.matched_reference == 0
    assert result.warnings == ()  # the cut is the paper's, which the summary says once
    expected = SmileParts(
        sentence=0.75, keyword=0.75, exact=0.5, lexical=0.625, best_window="a red", bin=3, correct=False
    )
    assert_parts(result, expected)


def test_paper() -> None:
    # m is 0 for both ("red dog" does not stand in N(y)): .3·.75 + .7·.375 = .4875 and .4125
    result = smile(preset="paper")
    assert result.score == pytest.approx(0.4875, abs=1e-6)
    assert result.parts.exact == 0
    assert smile(ITEM_WITH_CAT, preset="paper", table=WITH_CAT).parts.exact == 1


def test_reference_code() -> None:
    # raw cosines. red dogs: s = .5, k = .5, m = .5, l = .5, avg = .5, hm = 2·.25/1 = .5. Kittens: s = 0, l = .25: .125.
    result = smile(preset="reference_code")
    assert result.score == pytest.approx(0.5, abs=1e-6)
    expected = SmileParts(
        sentence=0.5, keyword=0.5, exact=0.5, lexical=0.5, best_window="a red", bin=3, correct=False, harmonic_mean=0.5
    )
    assert_parts(result, expected)


ITEM_WITH_CAT = Item("2", "", ("Cats",), "A red cat here.")
WITH_CAT = Table(VECTORS | {"Cats": at(120)})


def test_reference_code_has_no_harmonic_mean_where_a_term_is_negative() -> None:
    # s = cos 120° = -.5, k = 1, m = 1, l = 1: avg = .25, and 2sl/(s + l) would be -2.
    result = smile(ITEM_WITH_CAT, preset="reference_code", table=WITH_CAT)
    assert result.score == pytest.approx(0.25, abs=1e-6)
    assert result.parts.harmonic_mean is None


def test_a_negative_score_is_bin_0() -> None:
    # s = cos 180° = -1, k = cos 180° = -1, m = 0, l = -.5: avg = -.75
    item = Item("3", "", ("no",), "yes")
    result = smile(item, preset="reference_code", table=Table({"yes": at(0), "no": at(180)}))
    assert result.score == pytest.approx(-0.75, abs=1e-6)
    assert result.parts.bin == 0


def test_reference_code_counts_repeated_words_and_v1_does_not() -> None:
    item = Item("4", "", ("red red dog",), "red")
    table = Table({"red": at(0), "red red dog": at(90)})
    assert smile(item, preset="reference_code", table=table).parts.exact == pytest.approx(2 / 3)
    assert smile(item, table=table).parts.exact == pytest.approx(1 / 2)


@pytest.mark.parametrize(("weight", "score"), [(0.0, 0.625), (0.5, 0.6875), (1.0, 0.75)])
def test_the_sentence_weight_moves_the_score_between_its_terms(weight: float, score: float) -> None:
    assert smile(sentence_weight=weight).score == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("sentence_weight", {"sentence_weight": float("nan")}),
        ("sentence_weight", {"sentence_weight": float("inf")}),
        ("sentence_weight", {"sentence_weight": 1.001}),
        ("sentence_weight", {"sentence_weight": -0.1}),
        ("preset", {"preset": "v2"}),
        ("synthetic", {"synthetic": "yes"}),
    ],
)
def test_a_parameter_out_of_range_is_named(field: str, values: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        SmileParameters(**values)
    assert caught.value.field == field


def test_defaults_are_resolved() -> None:
    for preset, weight in {"v1": 0.3, "paper": 0.3, "reference_code": 0.5}.items():
        parameters = SmileParameters(preset=SmilePreset(preset))
        assert parameters.resolved(NO_MODEL).sentence_weight == parameters.weight == weight


def test_correct_from_two_thirds() -> None:
    # One word, found, as near as s makes it: score = .3·s + .7, so bin 4 from s = 0 on. Weight 1: score = s.
    def of(cosine_degrees: float) -> Any:
        table = Table({"Cat!": at(0), "cats": at(cosine_degrees), "cat": at(0)})
        return smile(Item("5", "", ("cats",), "Cat!"), sentence_weight=1.0, table=table)

    above, below = of(70.0), of(71.0)  # (1 + cos 70°)/2 = .671, (1 + cos 71°)/2 = .663
    assert (above.parts.bin, above.parts.correct) == (4, True)
    assert (below.parts.bin, below.parts.correct) == (3, False)
    assert of(0).parts.bin == 5  # floor(6 · 1) is limited


@pytest.mark.parametrize("preset", ["v1", "fast", "one_pass", "whole", "paper", "reference_code"])
def test_only_a_weight_of_the_callers_own_makes_the_general_cut_uncalibrated(preset: str) -> None:
    parameters = SmileParameters(preset=SmilePreset(preset)).resolved(NO_MODEL)
    assert not parameters.is_uncalibrated
    assert not SmileParameters(preset=SmilePreset(preset), sentence_weight=parameters.weight).is_uncalibrated
    own = SmileParameters(preset=SmilePreset(preset), sentence_weight=0.2)
    assert own.is_uncalibrated
    assert not SmileParameters(preset=SmilePreset(preset), sentence_weight=0.2, threshold=0.7).is_uncalibrated
    assert smile(sentence_weight=0.3).warnings == ()
    assert smile(sentence_weight=0.2).warnings == (ResultWarning.UNCALIBRATED,)


def test_a_fitted_threshold_decides() -> None:
    assert smile().parts.correct is False
    result = smile(calibration=fitted(0.66))
    assert (result.parts.correct, result.parts.bin, result.warnings) == (True, 3, ())
    assert smile(calibration=fitted(0.67)).parts.correct is False


@pytest.mark.parametrize("values", [{"sentence_weight": 0.2}, {"preset": "paper"}, {"preset": "reference_code"}])
def test_a_threshold_fitted_for_another_formula_does_not_count(values: Any) -> None:
    result = smile(calibration=fitted(0.0), **values)
    assert result.warnings == ((ResultWarning.UNCALIBRATED,) if "sentence_weight" in values else ())
    assert result.parts.correct is False
    assert SmileParameters(synthetic=SyntheticMode.INLINE).resolved(ModelMetadata((fitted(0.5),))).threshold is None


def test_a_fitted_weight_is_what_an_unset_one_means() -> None:
    metadata = ModelMetadata((fitted(0.6, sentence_weight=0.45),))
    resolved = SmileParameters().resolved(metadata)
    assert (resolved.sentence_weight, resolved.threshold, resolved.calibration) == (0.45, 0.6, "by hand")
    assert SmileParameters(preset=SmilePreset.FAST).resolved(metadata).threshold == 0.6
    usual = SmileParameters(sentence_weight=0.3).resolved(metadata)
    assert (usual.sentence_weight, usual.threshold, usual.calibration) == (0.3, None, "")
    own = SmileParameters(threshold=0.5).resolved(metadata)
    assert (own.sentence_weight, own.threshold, own.calibration) == (0.45, 0.5, "by hand")
    assert SmileParameters(threshold=0.5, sentence_weight=0.45).resolved(metadata).calibration == ""
    # .45 · .75 + .55 · .625 = .68125
    assert smile(calibration=fitted(0.6, sentence_weight=0.45)).score == pytest.approx(0.68125, abs=1e-6)


def test_a_threshold_of_the_callers_own_needs_no_fit() -> None:
    result = smile(threshold=0.66)
    assert (result.correct, result.warnings) == (True, ())
    with pytest.raises(ParameterError, match="threshold"):
        SmileParameters(threshold=float("nan"))
    with pytest.raises(ParameterError, match=r"must be a number up to 1, which is the highest score, not 5\.0"):
        SmileParameters(threshold=5.0)
    # A fit that calls no answer right is written into results, and its line is read again.
    assert SmileParameters(threshold=math.nextafter(1.0, math.inf)).threshold == 1 + 2**-52


def test_equal_scores_name_the_first_reference_and_the_first_window() -> None:
    vectors = {"one two": at(0), "x": at(50), "y": at(50), "one": at(70), "two": at(30)}  # both 20° from x and y
    result = smile(Item("6", "", ("x", "y"), "one two"), table=Table(vectors))
    assert result.matched_reference == 0
    assert result.parts.best_window == "one"


def test_everything_is_asked_for_in_one_round_with_its_tier() -> None:
    table = Table(VECTORS)
    smile(table=table)
    (needs,) = table.rounds
    keywords, windows, prediction, sentences = [(need.tier, need.texts) for need in needs if isinstance(need, Embed)]
    assert prediction == (Tier.PREDICTION, ("A red cat here.",))
    assert sentences == (Tier.REFERENCE, ("red dogs", "Kittens"))
    assert keywords == (Tier.REFERENCE, ("red dog", "kitten"))
    assert windows[0] is Tier.WINDOW
    assert set(windows[1]) == {"a", "red", "cat", "here", "a red", "red cat", "cat here"}
    assert len(needs) == 4


def test_prepare_asks_for_all_that_score_needs_of_the_references() -> None:
    table = Table(VECTORS)
    entry = ReferenceEntry(ITEM.question, ITEM.references)
    assert table.run(Smile().prepare(entry, SmileParameters())) is None
    scoring = Table(VECTORS)
    smile(table=scoring)
    wanted = {
        t for need in scoring.rounds[0] if isinstance(need, Embed) and need.tier is Tier.REFERENCE for t in need.texts
    }
    assert table.embedded == [wanted]


@pytest.mark.parametrize("text", ["A red cat here.", "red dogs", "kitten", "cat here"])
def test_a_cut_text_is_a_warning(text: str) -> None:
    result = smile(table=Table(VECTORS, truncated=frozenset({text})))
    assert ResultWarning.TRUNCATED in result.warnings
    assert result.score == pytest.approx(0.6625, abs=1e-6)


def test_too_many_windows_is_a_warning() -> None:
    words = [f"w{i}" for i in range(600)]
    vectors = {text: at(90) for text in [*words, " ".join(words)]} | {"w5": at(0), "z": at(0)}
    result = smile(Item("7", "", ("z",), " ".join(words)), table=Table(vectors))
    assert ResultWarning.TRUNCATED in result.warnings
    assert result.parts.best_window == "w5"


class TestSynthetic:
    """What stands for the reference in the sentence term."""

    item = Item("8", "Q?", ("red dogs", "Kittens"), "A red cat here.", ("They are red dogs.", "They are kittens."))
    vectors = VECTORS | {"They are red dogs.": at(90), "They are kittens.": at(0)}

    def test_inline(self) -> None:
        # red dogs: s = .5 → .15 + .4375 = .5875; Kittens: s = 1 → .3 + .2625 = .5625
        table = Table(self.vectors)
        result = smile(self.item, synthetic="inline", table=table)
        assert result.score == pytest.approx(0.5875, abs=1e-6)
        assert result.parts.keyword == pytest.approx(0.75, abs=1e-6)
        assert not table.embedded[0] & {"red dogs", "Kittens"}

    def test_none_leaves_the_items_synthetic_answers_alone(self) -> None:
        assert smile(self.item).score == pytest.approx(0.6625, abs=1e-6)

    def test_prepared(self) -> None:
        table = Table(self.vectors, prepared=dict(zip(self.item.references, self.item.synthetic_answers, strict=True)))
        result = smile(ITEM, synthetic="prepared", table=table)
        assert result.score == pytest.approx(0.5875, abs=1e-6)
        assert len(table.rounds) == 2

    def test_a_missing_prepared_answer_is_named_and_says_what_to_do(self) -> None:
        table = Table(self.vectors, prepared={"red dogs": "They are red dogs."})
        result = smile(ITEM, synthetic="prepared", table=table)
        assert result.status is Status.NOT_PREPARED
        assert "references[1]" in result.message
        assert "check the set's name" in result.message
        assert "gradewire prepare" in result.message
        assert len(table.rounds) == 1  # nothing is embedded in vain

    @pytest.mark.parametrize("answers", [(), ("one",), ("one", "two", "three"), ("one", " ")])
    def test_answers_that_do_not_fit_are_invalid(self, answers: tuple[str, ...]) -> None:
        item = Item("9", "", ("red dogs", "Kittens"), "A red cat here.", answers)
        assert smile(item, synthetic="inline").status is Status.INVALID_INPUT

    def test_prepare_asks_for_the_synthetic_answers(self) -> None:
        entry = ReferenceEntry("Q?", self.item.references, self.item.synthetic_answers)
        table = Table(self.vectors)
        assert table.run(Smile().prepare(entry, SmileParameters(synthetic="inline"))) is None
        assert table.embedded == [{"They are red dogs.", "They are kittens.", "red dog", "kitten"}]

    def test_prepare_tells_of_a_missing_stored_answer(self) -> None:
        entry = ReferenceEntry("Q?", self.item.references)
        failure = Table(self.vectors).run(Smile().prepare(entry, SmileParameters(synthetic="prepared")))
        assert failure.status is Status.NOT_PREPARED


@pytest.mark.parametrize("preset", ["v1", "fast", "one_pass", "whole", "paper", "reference_code"])
def test_a_failure_of_the_engine_is_the_result(preset: str) -> None:
    failure = Failure(Status.UNAVAILABLE, "queue full")
    assert smile(preset=preset, table=Table(VECTORS, failure=failure)) == MetricResult.failed(failure)
    prepared = Table(VECTORS, failure=failure).run(Smile().prepare(ReferenceEntry("", ("x",)), SmileParameters()))
    assert prepared == failure


def assert_parts(result: MetricResult, expected: SmileParts) -> None:
    assert result.parts is not None
    for name in SmileParts.__dataclass_fields__:
        found, wanted = getattr(result.parts, name), getattr(expected, name)
        assert found == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted), name


@pytest.mark.parametrize(
    ("reference", "outcome"),
    [
        ("red dogs of 1912", "found"),
        ("red dogs of 1913", "contradicted"),
        ("red dogs, 5 kg", "missing"),
        ("dogs", None),
    ],
)
def test_what_became_of_the_references_values_is_told_and_moves_no_score(reference: str, outcome: str | None) -> None:
    item = Item("1", "", (reference,), "red dogs in 1912")

    class Same(dict[str, Any]):
        def __missing__(self, text: str) -> Any:
            return at(0)

    result = smile(item, table=Table(Same()))
    assert result.parts.value_outcome == outcome
    words = (result.parts.exact + result.parts.keyword) / 2
    assert result.score == pytest.approx(0.3 * result.parts.sentence + 0.7 * words)
