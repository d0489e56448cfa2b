"""BERTScore worked out on paper; its parity with the package stands in test_bertscore_parity."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import token_vectors, with_special
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

from gradewire_proto.choices import Corpus
from gradewire_server.domain.items import Failure, Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import ModelMetadata, ParameterError, TokenLayer
from gradewire_server.domain.needs import CorpusStatistics, DocumentFrequencies, EmbedTokens, Terms, Tier, TokenVectors
from gradewire_server.metrics.encoder.bertscore import Bertscore, BertscoreParameters, match

METADATA = ModelMetadata(token_layers=(TokenLayer(3, (0.2, 0.4, 0.3)), TokenLayer(4)), bertscore_layer=3)
SPECIAL = (0.0, 0.0)  # similar to nothing, so that only the words decide


def tokens(*degrees: float, ids: tuple[int, ...] = (), truncated: bool = False, start: int = 0) -> TokenVectors:
    """Tokens at angles, one character each, between two special ones; vectors of any length, as a model gives them."""
    count = len(degrees)
    return TokenVectors(
        sentence=np.array(at(0), np.float32),
        tokens=np.array([SPECIAL, *((3 * x, 3 * y) for x, y in map(at, degrees)), SPECIAL], np.float32),
        offsets=np.array([(0, 0), *((start + i, start + i + 1) for i in range(count)), (0, 0)], np.int32),
        ids=np.array([-1, *(ids or range(1, count + 1)), -1], np.int32),
        truncated=truncated,
    )


def grade(table: Table, *references: str, question: str = "", **given: Any) -> Any:
    parameters = BertscoreParameters(model="m", **given).resolved(METADATA)
    return table.run(Bertscore().score(Item("1", question, references, "y"), parameters, METADATA))


def test_precision_recall_and_f1() -> None:
    # y: 0°, 90°; r: 0°, 60°, 60°. Precision: 1 and cos 30° = .866025: .933013. Recall: 1, cos 30° twice: .910684.
    # F1 = 2 * .933013 * .910684 / 1.843697 = .921713.
    table = Table(tokens={"y": tokens(0, 90), "r": tokens(0, 60, 60)})
    result = grade(table, "r")
    parts = result.parts
    assert (parts.precision, parts.recall, parts.f1) == pytest.approx((0.933013, 0.910684, 0.921713), abs=1e-6)
    assert result.score == parts.f1
    assert result.correct is None
    assert table.rounds == [
        (EmbedTokens("m", ("y",), Tier.PREDICTION, 3), EmbedTokens("m", ("r",), Tier.REFERENCE, 3)),
    ]


@pytest.mark.parametrize(("measure", "best"), [("precision", 0), ("recall", 1), ("f1", 1)])
def test_the_best_reference_by_the_measure(measure: str, best: int) -> None:
    # y: 0°. r0: 0°, 90° has precision 1, recall .5; r1: 20° has .94 and .94.
    table = Table(tokens={"y": tokens(0), "r0": tokens(0, 90), "r1": tokens(20), "r2": tokens(20)})
    result = grade(table, "r0", "r1", "r2", measure=measure)
    assert result.matched_reference == best
    assert result.score == getattr(result.parts, measure)


def test_weights_are_the_logarithm_of_rarity() -> None:
    # Of 3 references token 1 stands in 3 (weight log 4/4 = 0), token 2 in 1 (log 2), token 9 in none (log 4 = 2 log 2).
    # y: token 2 at 0° (cos 1) and token 9 at 90° (cos 0): precision 1/3. r: token 1 is weightless, token 2 matches: 1.
    corpus = DocumentFrequencies("request:3:abc", 3, {1: 3, 2: 1})
    table = Table(tokens={"y": tokens(0, 90, ids=(2, 9)), "r": tokens(180, 0, ids=(1, 2))}, corpus=corpus)
    result = grade(table, "r", idf="request")
    assert result.parts.precision == pytest.approx(1 / 3)
    assert result.parts.recall == pytest.approx(1)
    assert result.parts.corpus == "request:3:abc"
    assert table.rounds[0][2] == CorpusStatistics(Corpus.REQUEST, Terms.TOKENS, "m")


def test_behind_a_question_weights_are_counted_with_it() -> None:
    corpus = DocumentFrequencies("request:2:abc", 2, {1: 1})
    table = Table(tokens={"q? y": tokens(0, 0, 0, 0), "q? r": tokens(0, 0, 0, 0)}, corpus=corpus)
    grade(table, "r", question="q?", idf="request", with_question=True)
    assert table.rounds[0][2] == CorpusStatistics(Corpus.REQUEST, Terms.TOKENS, "m", with_question=True)


def test_tokens_around_a_text_weigh_nothing_and_can_be_matched() -> None:
    around = np.array([at(10), at(200), at(300)], np.float32)
    y = TokenVectors(around[0], around, np.array([(0, 0), (0, 1), (0, 0)], np.int32), np.array([-1, 7, -1]), False)  # noqa: FBT003 - `truncated`
    r = tokens(10, 200)
    values = match(y, [r], None, 0)
    assert values[0, 0] == pytest.approx(1)  # 200° is matched; 10° and 300° are not asked about
    assert values[0, 1] == pytest.approx(1)  # r's 10° is matched by y's special one


def test_rescaling_stretches_each_value_by_its_own_baseline() -> None:
    table = Table(tokens={"y": tokens(0), "r": tokens(60)})  # all three are cos 60° = .5
    parts = grade(table, "r", rescale=True).parts
    expected = ((0.5 - 0.2) / 0.8, (0.5 - 0.4) / 0.6, (0.5 - 0.3) / 0.7)
    assert (parts.precision, parts.recall, parts.f1) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("threshold", "correct"), [(0.5, True), (0.51, False)])
def test_a_threshold_gives_a_verdict(threshold: float, correct: bool) -> None:  # noqa: FBT001 - a table
    table = Table(tokens={"y": tokens(0), "r": tokens(59.99)})
    assert grade(table, "r", threshold=threshold).correct is correct


def test_a_score_that_is_the_threshold_is_right() -> None:
    table = Table(tokens={"y": tokens(0), "r": tokens(60)})
    score = grade(table, "r").score
    assert grade(table, "r", threshold=score).correct is True
    assert grade(table, "r", threshold=math.nextafter(score, 1)).correct is False


def test_the_question_stands_before_both() -> None:
    table = Table(tokens={"q? y": tokens(0, 0, 0, 0), "q? r": tokens(0, 0, 0, 60)})
    assert grade(table, "r", question="q?", with_question=True).parts.recall == pytest.approx(0.875)
    blank = grade(table, "r", question=" ", with_question=True)
    assert blank.status is Status.INVALID_INPUT
    assert blank.message.startswith("question")


def test_where_the_question_takes_all_room_there_is_no_score() -> None:
    cut = tokens(0, 0, truncated=True)  # two characters of question, as many as are read
    full = tokens(0, 0, 0, 0)
    for y, r in ((cut, full), (full, cut)):
        result = grade(Table(tokens={"q? y": y, "q? r": r}), "r", question="q?", with_question=True)
        assert result.status is Status.INVALID_INPUT, "all that is read of both is the question: they would be equal"


def test_a_text_without_tokens_is_no_number() -> None:
    assert grade(Table(tokens={"y": tokens(), "r": tokens(0)}), "r").status is Status.EMPTY_PREDICTION
    assert grade(Table(tokens={"y": tokens(0), "r": tokens()}), "r").status is Status.INVALID_INPUT
    result = grade(Table(tokens={"y": tokens(0), "r": tokens(), "s": tokens(60)}), "r", "s")
    assert result.matched_reference == 1


def test_weightless_texts_and_corpora_are_no_number() -> None:
    table = Table(tokens={"y": tokens(0), "r": tokens(0)}, corpus=DocumentFrequencies("c", 2, {1: 2}))
    assert grade(table, "r", idf="request").status is Status.INVALID_INPUT
    table.corpus = DocumentFrequencies("c", 1, {1: 1})
    alone = grade(table, "r", idf="request")
    assert alone.status is Status.INVALID_PARAMETER
    assert alone.message.startswith("idf")


def test_many_long_references_are_looked_at_round_by_round() -> None:
    names = [f"{number} " + "x" * 3000 for number in range(7)]
    table = Table(tokens={"y": tokens(0)} | {name: tokens(80 - 10 * i) for i, name in enumerate(names)})
    result = grade(table, *names)
    assert result.matched_reference == 6
    assert [sum(len(need.texts) for need in needs) for needs in table.rounds] == [3, 2, 2, 1]  # type: ignore[union-attr]
    table.rounds.clear()
    parameters = BertscoreParameters(model="m", layer=4)
    assert table.run(Bertscore().prepare(ReferenceEntry("", tuple(names)), parameters)) is None
    assert {need for needs in table.rounds for need in needs} >= {EmbedTokens("m", (names[6],), Tier.REFERENCE, 4)}


def test_truncated_texts_are_a_warning_and_failures_pass() -> None:
    table = Table(tokens={"y": tokens(0), "r": tokens(0, truncated=True)})
    assert grade(table, "r").warnings == (ResultWarning.TRUNCATED,)
    late = Failure(Status.TIMEOUT, "late")
    assert grade(Table(failure=late), "r").status is Status.TIMEOUT
    assert grade(table, "").status is Status.INVALID_INPUT
    assert table.run(Bertscore().prepare(ReferenceEntry("", ("",)), BertscoreParameters())).status


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"layer": 2}, "layer"),
        ({"layer": 0}, "layer"),
        ({"layer": 4, "rescale": True}, "rescale"),
        ({"threshold": math.nan}, "threshold"),
        ({"threshold": 5.0}, "threshold"),
        ({"measure": "f2"}, "measure"),
        ({"idf": "all"}, "idf"),
    ],
)
def test_bad_parameters_name_their_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        BertscoreParameters(**given).resolved(METADATA)
    assert caught.value.field == field


def test_a_layer_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ParameterError, match="for layer 7, only for 3, 4"):
        BertscoreParameters(layer=7).resolved(METADATA)


def test_a_baseline_that_is_not_there_names_the_command_that_writes_one() -> None:
    with pytest.raises(ParameterError, match=r"layer 4\. If the catalog has a baseline, run `gradewire models build`"):
        BertscoreParameters(layer=4, rescale=True).resolved(METADATA)


def test_the_models_own_layer_is_filled_in_and_a_corpus_named() -> None:
    resolved = BertscoreParameters(idf=Corpus.PREPARED).resolved(METADATA)
    assert resolved.layer == 3
    assert resolved.reads_prepared


WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9).map(" ".join)


@settings(max_examples=example_count(60))
@given(WORDS, st.lists(WORDS, min_size=1, max_size=5), st.booleans())
def test_it_is_what_the_definition_says(prediction: str, references: list[str], weigh: bool) -> None:  # noqa: FBT001 - drawn
    """Against plain loops, all references at once and one by one."""
    y, *rs = (with_special(token_vectors(text, 64), 1) for text in (prediction, *references))
    counts = {int(number): index % 3 for index, number in enumerate(np.unique(np.concatenate([r.ids for r in rs])))}
    corpus = DocumentFrequencies("c", 9, counts) if weigh else None

    def weight(number: int) -> float:
        return 0.0 if number < 0 else math.log(10 / (counts.get(number, 0) + 1)) if weigh else 1.0

    def side(mine: TokenVectors, other: TokenVectors) -> float:
        total = matched = 0.0
        for vector, number in zip(mine.tokens, mine.ids.tolist(), strict=True):
            cosines = [vector @ v / (np.linalg.norm(vector) * np.linalg.norm(v)) for v in other.tokens]
            matched += weight(number) * max(cosines)
            total += weight(number)
        return matched / total

    together = match(y, rs, corpus, 0)
    for r, row in zip(rs, together, strict=True):
        assert row[:2] == pytest.approx((side(y, r), side(r, y)), abs=1e-5)
        assert match(y, [r], corpus, 0)[0] == pytest.approx(row, abs=1e-6)
