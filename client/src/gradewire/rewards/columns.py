"""What adapters read of a framework's data: references, questions, prompts."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire.rewards._extraction.chat import last_question

# In this order; names that data sets for reinforcement learning use.
REFERENCE_NAMES = (
    *("references", "reference", "ground_truth", "expected_answer", "answer", "answers", "solution", "label", "target"),
)


def reference_name(columns: Mapping[str, Any], chosen: str | None) -> str:
    """The name under which right answers stand.

    Raises:
        InvalidRequest: There is none of the usual names, or not the chosen one.
    """
    names = REFERENCE_NAMES if chosen is None else (chosen,)
    found = next((name for name in names if name in columns), None)
    if found is None:
        there = ", ".join(sorted(map(str, columns))) or "none"
        raise InvalidRequest(f"references: no column is called {' or '.join(names)}; there are: {there}")
    return found


def question_in(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """The question that a prompt asks: of a chat the user's last message, of a text all of it."""
    return prompt if isinstance(prompt, str) else last_question(prompt)
