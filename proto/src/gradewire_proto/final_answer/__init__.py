"""The final answer that a completion asserts: found by marks, phrases and corrections in 13 languages."""

from typing import TYPE_CHECKING, Any

from gradewire_proto.final_answer.types import MAX_READ_CHARACTERS, FinalAnswer, Position

if TYPE_CHECKING:
    from gradewire_proto.final_answer.find import find_final_answer, without_struck_text

__all__ = ["MAX_READ_CHARACTERS", "FinalAnswer", "Position", "find_final_answer", "without_struck_text"]


def __getattr__(name: str) -> Any:
    """Import the search when it is first used: its regular expressions take a second or two to compile."""
    if name in {"find_final_answer", "without_struck_text"}:
        from gradewire_proto.final_answer import find  # noqa: PLC0415 - see the docstring

        return getattr(find, name)
    raise AttributeError(name)
