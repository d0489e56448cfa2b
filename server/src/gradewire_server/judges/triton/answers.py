"""Requests and answers in the tensors of Triton's vLLM backend (its src/utils/request.py)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.judges.remote.errors import unreadable
from gradewire_server.judges.remote.labels import Labels, Step
from gradewire_server.judges.remote.pictures import base64_of
from gradewire_server.judges.remote.server import Answer, Question
from gradewire_server.judges.triton.chat import chat_text

TOP_LOGPROBS: Final = 20
"""vLLM's own limit unless it is told otherwise (max_logprobs)."""
FLAGS: Final = ("return_finish_reason", "return_logprobs", "return_num_input_tokens", "return_num_output_tokens")

Tensors = dict[str, NDArray[Any]]


def request_tensors(question: Question, known: frozenset[str], image_placeholder: str = "") -> Tensors:
    """A request.

    Args:
        question: What is asked.
        known: Names of the model's inputs: older backends know fewer of them.
        image_placeholder: What stands for a picture in the model's prompt.
    """
    tensors = {
        "text_input": _bytes(chat_text(question.prompt, image_placeholder=image_placeholder)),
        "sampling_parameters": _bytes(json.dumps(_sampling(question, logprobs="return_logprobs" in known))),
        "stream": np.array([False]),
        "exclude_input_in_output": np.array([True]),
        **{flag: np.array([True]) for flag in FLAGS},
    }
    if question.prompt.images:
        tensors["image"] = _bytes(*map(base64_of, question.prompt.images))
    return {name: value for name, value in tensors.items() if name in known}


def _sampling(question: Question, *, logprobs: bool) -> Mapping[str, object]:
    greedy: dict[str, object] = {"temperature": 0.0}
    if not question.options:
        return greedy | {"max_tokens": question.max_tokens, "stop": list(question.stop)}
    labels = Labels(question.options)
    before = " " if question.prompt.opening else ""
    # JSON within JSON is what the backend reads. vLLM's log probabilities are those before the labels' mask.
    choice = json.dumps({"choice": [before + option for option in question.options]})
    if logprobs:
        return greedy | {
            "max_tokens": labels.tokens_to_tell,
            "logprobs": TOP_LOGPROBS,
            "structured_outputs": choice,
        }
    return greedy | {"max_tokens": labels.max_tokens, "structured_outputs": choice}


def answer_from(answers: Sequence[Tensors]) -> Answer:
    """Reads what a model answered; raises RemoteError where that is not one whole answer."""
    if not answers:
        raise unreadable("nothing")
    try:
        text = "".join(_text(each["text_output"]) for each in answers)
        steps = [step for each in answers if "logprobs" in each for step in _steps(_text(each["logprobs"]), text)]
        finish = _text(answers[-1]["finish_reason"]) if "finish_reason" in answers[-1] else "stop"
        read = [_count(each, "num_input_tokens") for each in answers if "num_input_tokens" in each]
        written = [_count(each, "num_output_tokens") for each in answers if "num_output_tokens" in each]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise unreadable("something else than the vLLM backend's tensors") from error
    return Answer(
        text,
        finish != "length",
        tuple(steps) or None,
        continued=True,
        prompt_tokens=max(read, default=None),
        generated_tokens=sum(written) if written else None,
    )


def _steps(content: str, text: str) -> list[Step]:
    """Steps of one answer: for each token the alternatives by id, itself among them, in an order that is no promise."""
    steps = []
    rest = text
    for ranked in json.loads(content) or ():
        tops = [
            (str(each["decoded_token"] or ""), float(each["logprob"]), int(each["rank"] or 0))
            for each in ranked.values()
        ]
        # The written one is the longest that the text goes on with; what is no text (the turn's end) is put first.
        token = max((each for each, _, _ in tops if each and rest.startswith(each)), key=len, default=tops[0][0])
        rest = rest.removeprefix(token)
        # One that was written though it is none of the most probable speaks for no label.
        likely = tuple((each, logprob) for each, logprob, rank in tops if rank <= TOP_LOGPROBS)
        steps.append(Step(token, likely))
    return steps


def _text(tensor: NDArray[Any]) -> str:
    value = tensor.reshape(-1)[0]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _count(answer: Tensors, name: str) -> int:
    return max(0, int(answer[name].reshape(-1)[0]))


def _bytes(*texts: str) -> NDArray[Any]:
    return np.array([text.encode("utf-8", "replace") for text in texts], dtype=np.object_)
