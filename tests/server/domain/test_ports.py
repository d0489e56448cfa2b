"""The message about a model that cannot be used ends with the command to run, so that users can copy it."""

import pytest

from gradewire_server.domain.ports import ModelStatus

BUILD = "gradewire models build mini"
SERVE = "serve org/mini with vLLM"


@pytest.mark.parametrize(
    ("state", "how_to_get", "message"),
    [
        ("missing", BUILD, f"Model mini is not built. Run: {BUILD}"),
        ("broken", BUILD, f"Model mini is broken and must be replaced. Run: {BUILD}"),
        ("missing", SERVE, f"Model mini is not built. To use it, {SERVE}"),
    ],
)
def test_the_message_says_how_to_get_the_model(state: str, how_to_get: str, message: str) -> None:
    assert ModelStatus("mini", "", state, how_to_get=how_to_get).unusable_message == message


def test_a_backends_own_message_comes_first() -> None:
    assert ModelStatus("mini", "", "broken", message="no memory", how_to_get=BUILD).unusable_message == "no memory"
