from tests.client.cli.choosing.samples import pair

from gradewire.cli.choosing.metric_chooser import MetricChooser
from gradewire.cli.choosing.pairs import AnswerPair, Choice
from gradewire.comparison.preferences import TieMargin


async def chosen(pairs: list[AnswerPair], tie_margin: TieMargin = 0.2) -> list[Choice]:
    chooser = MetricChooser("smile", "smile:v1/1", tie_margin)
    return [choice async for batch in chooser.choose(pairs) for _, choice in batch]


async def test_the_higher_score_wins_beyond_the_margin() -> None:
    choices = await chosen([pair(0, 0.2, 0.9), pair(1, 0.9, 0.2), pair(2, 0.5, 0.6)])
    assert [choice.winner for choice in choices] == ["model_b", "model_a", "tie"]


async def test_verdicts_choose_where_they_are_asked_for() -> None:
    pairs = [pair(0, 0.2, 0.9, (True, True)), pair(1, 0.5, 0.5, (True, False)), pair(2, 0.2, 0.9)]
    choices = await chosen(pairs, "verdict")
    assert [choice.winner for choice in choices] == ["tie", "model_a", None]
    assert (choices[2].status, choices[2].message) == ("NO_VERDICT", "smile gives no verdict")


async def test_a_pair_without_a_score_has_a_status_and_its_neighbours_a_winner() -> None:
    choices = await chosen([pair(0, 0.2, 0.9), pair(1, None, 0.9), pair(2, 0.2, None), pair(3, 0.9, 0.2)])
    assert [choice.winner for choice in choices] == ["model_b", None, None, "model_a"]
    assert [choice.message for choice in choices[1:3]] == ["base has no score of smile", "new has no score of smile"]
    assert {choice.status for choice in choices[1:3]} == {"EMPTY_PREDICTION"}


async def test_more_pairs_than_a_batch_keep_their_order() -> None:
    pairs = [pair(number) for number in range(2500)]
    chooser = MetricChooser("smile", "", 0.2)
    order = [each.index async for batch in chooser.choose(pairs) for each, _ in batch]
    assert order == list(range(2500))
    assert chooser.identity == {"by": "smile", "tie_margin": 0.2}
