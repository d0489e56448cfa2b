"""What the emulated vLLM backend answers, tensor by tensor, on the real server."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tests.support.judges.vllm_repository import vllm_repository
from tests.support.servers.triton import TritonServer
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

MODEL = "smollm2"
PROMPT = "<|im_start|>user\nIs Paris in France?<|im_end|>\n<|im_start|>assistant\nVerdict:"
CHOICE = {
    "max_tokens": 2,
    "temperature": 0,
    "logprobs": 5,
    "structured_outputs": json.dumps({"choice": [" yes", " no"]}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    directory = tmp_path_factory.mktemp("vllm")
    with TritonServer(directory / "state", vllm_repository(directory, MODEL)) as server:
        yield server


def tensors(sampling: object, **flags: bool) -> list[tritonclient.grpc.InferInput]:
    values = {
        "text_input": np.array([PROMPT.encode()], np.object_),
        "sampling_parameters": np.array([json.dumps(sampling).encode()], np.object_),
        **{name: np.array([flag]) for name, flag in flags.items()},
    }
    made = []
    for name, value in values.items():
        made.append(tritonclient.grpc.InferInput(name, [1], np_to_triton_dtype(value.dtype)))
        made[-1].set_data_from_numpy(value)
    return made


def answered(server: TritonServer, sampling: object, **flags: bool) -> dict[str, Any] | str:
    """Outputs of the one answer, or its error."""
    found: list[dict[str, Any] | str] = []

    def take(result: tritonclient.grpc.InferResult | None, error: InferenceServerException | None) -> None:
        if result is None:
            found.append(str(error))
            return
        names = [output.name for output in result.get_response().outputs]
        found.append({name: result.as_numpy(name)[0] for name in names})

    with tritonclient.grpc.InferenceServerClient(server.url) as client:
        client.start_stream(take)
        client.async_stream_infer(MODEL, tensors(sampling, **flags))
        client.stop_stream()  # waits for what is under way
    (answer,) = found
    return answer


def test_only_what_was_asked_for_is_answered(server: TritonServer) -> None:
    answer = answered(server, CHOICE, exclude_input_in_output=True)
    assert isinstance(answer, dict)
    assert answer.keys() == {"text_output"}
    assert answer["text_output"] in {b" yes", b" no"}


def test_the_prompt_comes_first_unless_it_is_excluded(server: TritonServer) -> None:
    answer = answered(server, CHOICE)
    assert isinstance(answer, dict)
    assert answer["text_output"] in {f"{PROMPT}{label}".encode() for label in (" yes", " no")}


def test_log_probabilities_are_those_before_the_labels_mask(server: TritonServer) -> None:
    flags = ("logprobs", "cumulative_logprob", "finish_reason", "num_input_tokens", "num_output_tokens")
    answer = answered(server, CHOICE, exclude_input_in_output=True, **{f"return_{flag}": True for flag in flags})
    assert isinstance(answer, dict)
    assert answer.keys() == {"text_output", *flags}
    steps = json.loads(answer["logprobs"])
    assert len(steps) == answer["num_output_tokens"]
    assert answer["num_input_tokens"] > 10
    assert answer["finish_reason"] in {b"stop", b"length"}
    assert all(5 <= len(step) <= 6 for step in steps)
    others = [each for each in steps[0].values() if each["decoded_token"].strip() not in {"yes", "no", ""}]
    assert others, "the mask left nothing else"
    assert sorted(each["rank"] for each in steps[0].values())[:5] == [1, 2, 3, 4, 5]
    written = sum(next(iter(step.values()))["logprob"] for step in steps)
    assert answer["cumulative_logprob"] == pytest.approx(written, abs=1e-4)


@pytest.mark.parametrize(
    ("sampling", "flags", "words"),
    [
        (CHOICE, {"stream": True, "exclude_input_in_output": False}, "is not allowed"),
        ({"beam_width": 4}, {}, "unknown sampling parameters"),
        ([1], {}, "Error generating stream"),
        ({**CHOICE, "structured_outputs": "{"}, {}, "Error generating stream"),
    ],
)
def test_what_is_wrong_with_a_request_is_its_own_error(
    server: TritonServer, sampling: object, flags: dict[str, bool], words: str
) -> None:
    error = answered(server, sampling, **flags)
    assert isinstance(error, str)
    assert words in error
    assert isinstance(answered(server, CHOICE), dict)


def test_it_answers_streams_only_as_the_real_one(server: TritonServer) -> None:
    with (
        tritonclient.grpc.InferenceServerClient(server.url) as client,
        pytest.raises(InferenceServerException, match="decoupled"),
    ):
        client.infer(MODEL, tensors(CHOICE))
