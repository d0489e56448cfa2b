"""Completions in texts that hold the prompt as well, with a chat template's marks."""

import re

_TURNS = (
    *("<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<start_of_turn>model\n"),
    *("<｜Assistant｜>", "<|assistant|>", "[/INST]", "<|Assistant|>"),  # noqa: RUF001 - DeepSeek's full-width bars
)
_END = re.compile(
    r"(?:<\|(?:im_end|eot_id|endoftext|end_of_text|end|eom_id)\|>|</s>|<end_of_turn>|<｜end▁of▁sentence｜>|<pad>|\s)+\Z"  # noqa: RUF001 - as above
)


def completion_in(query: str, prompt: str) -> str | None:
    """What follows the prompt in a query, without a template's marks at its end; None where it cannot be told.

    Where decoding has changed the prompt, what follows the last opening of an assistant's turn is taken.
    """
    if prompt and (found := query.find(prompt)) >= 0:
        return without_end(query[found + len(prompt) :])
    for turn in _TURNS:
        _, opening, completion = query.rpartition(turn)
        if opening:
            return without_end(completion)
    return None


def without_end(completion: str) -> str:
    """A completion without the marks by which a model ends its turn."""
    if not completion.endswith(">") and not completion[-1:].isspace():
        return completion  # as most do: the search below would begin at every blank
    tail = completion[-_LONGEST_END:]
    return completion[: len(completion) - len(tail)] + _END.sub("", tail)


_LONGEST_END = 4096
