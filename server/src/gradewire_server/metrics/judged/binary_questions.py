"""Binary questions: which they are, and the rule that grades answers to them.

Source: Mañas, Krojer and Agrawal 2024 (LAVE), section 4.2 and appendix A.3: yes/no questions are where language models
go wrong most.
"""

from collections import Counter
from collections.abc import Sequence

from gradewire_server.metrics.judged.reference_filter import Counted, count_references
from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict


def is_binary(counted: Counted) -> bool:
    """Whether the most common reference is yes or no; `counted` as `count_references` gives it."""
    return counted.keys[0] in {"yes", "no"}


def rule_verdict(question: str, references: Sequence[str], prediction: str) -> bool | None:
    """Whether the yes or no that a prediction says is that of most references.

    Returns:
        None, for the judge to decide, where the most common reference is neither yes nor no, the question asks for
        something else ("Who wrote it?" of a band named Yes), the prediction says neither beyond doubt, or as many
        references say the one as the other.
    """
    if not is_binary(count_references(references)) or not asks_yes_or_no(question):
        return None
    said, expected = leading_verdict(prediction), majority(references)
    return None if said is None or expected is None else said is expected


def majority(references: Sequence[str]) -> bool | None:
    """True for yes, False for no; None where as many references say the one as the other."""
    said = Counter(map(leading_verdict, references))
    return None if said[True] == said[False] else said[True] > said[False]
