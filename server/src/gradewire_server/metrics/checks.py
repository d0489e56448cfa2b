"""What every metric checks of an item before it grades it."""

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, Status


def check_references(references: tuple[str, ...]) -> Failure | None:
    """INVALID_INPUT where there is no reference or a blank one."""
    if not references:
        return Failure(Status.INVALID_INPUT, "references: give at least one right answer")
    for index, reference in enumerate(references):
        if not reference or reference.isspace():
            return Failure(Status.INVALID_INPUT, f"references[{index}]: is blank; leave it out or write the answer")
    return None


def check_item(item: Item) -> Failure | None:
    """INVALID_INPUT as `check_references`, else EMPTY_PREDICTION where the prediction is blank."""
    failure = check_references(item.references)
    if failure is None and (not item.prediction or item.prediction.isspace()):
        return Failure(
            Status.EMPTY_PREDICTION,
            "prediction: is blank; summaries count it as wrong, beside the mean of scored items",
        )
    return failure
