"""Which pairs can be compared, and which need no judge."""

from gradewire_server.domain.item import Pair
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.checks import check_question, check_references, has_letter_or_digit
from gradewire_server.metrics.compared.parameters import CompareParameters
from gradewire_server.metrics.judged.neutralise import without_markup


def check_pair(pair: Pair, parameters: CompareParameters) -> Failure | None:
    """INVALID_INPUT where something is missing that the judge is to be shown; EMPTY_PREDICTION where an answer is."""
    failure = check_question(pair.question, why="a judge compares answers to it", where="before two answers")
    if failure is None and parameters.references:
        failure = check_references(pair.references)
    if failure is None and parameters.image and not pair.images:
        failure = Failure(Status.INVALID_INPUT, "images: there is none, and image=true needs one")
    if failure is not None:
        return failure
    for name, answer in (("answer_a", pair.prediction), ("answer_b", pair.rival)):
        if not has_letter_or_digit(answer):
            return Failure(
                Status.EMPTY_PREDICTION,
                f"{name}: has no letter and no digit, so there is nothing to compare",
            )
    return None


def look_the_same(pair: Pair) -> bool:
    """Whether a reader sees no difference between the answers: white space and what is invisible aside."""
    return without_markup(pair.prediction) == without_markup(pair.rival)
