"""Which models can be used, and what to do about those that cannot."""

from typing import Final

from gradewire_server.domain.ports import ModelStatus

USABLE_STATES: Final = frozenset({"loaded", "built"})


def why_unusable(status: ModelStatus) -> str:
    """Why a model cannot be used and what to do; without the server's paths, which its log has. Empty when it can."""
    if status.state in USABLE_STATES:
        return ""
    if status.message:
        return status.message
    state = "not built here; get it" if status.state == "missing" else f"{status.state} here; replace it"
    return f"model {status.name} is {state} with: {status.how_to_get}"
