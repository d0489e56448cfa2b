"""What servers say of pictures that they do not take; words in the manner of vLLM, llama.cpp, OpenAI and gateways."""

import pytest

from gradewire_server.domain.result import Status
from gradewire_server.judges.remote.refused_pictures import refusal_of_pictures

MODEL = "llama-3.2-vision"


@pytest.mark.parametrize(
    "words",
    [
        "m is not a multimodal model",
        "At most 0 image(s) may be provided in one prompt.",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Invalid content type. image_url is only supported by certain models.",
        "No endpoints found that support image input",
        "This model doesn't support vision. For more information see the guide.",
        "Unsupported modality: image",
    ],
)
def test_words_about_a_model(words: str) -> None:
    refusal = refusal_of_pictures(words, MODEL, 400)
    assert refusal is not None
    assert refusal.failure.status is Status.JUDGE_CANNOT_SEE


@pytest.mark.parametrize(
    "words",
    [
        "At most 1 image(s) may be provided in one prompt.",
        "You uploaded an unsupported image. Please make sure your image is valid.",
        "unsupported image format: webp is not supported",
        "cannot identify image file",
        "absolute aspect ratio of the image must be smaller than 200",
        "Failed to load image or audio file",
    ],
)
def test_words_about_these_pictures(words: str) -> None:
    refusal = refusal_of_pictures(words, MODEL, 400)
    assert refusal is not None
    assert (refusal.failure.status, refusal.failure.message[:7]) == (Status.INVALID_INPUT, "images:")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("temperature is not supported by llama-3.2-vision", 400),
        ("the model llama-3.2-vision does not exist", 404),
        ("no such image", 404),
        ("internal error", 500),
        ("", 400),
    ],
)
def test_words_about_something_else(words: str, status: int) -> None:
    assert refusal_of_pictures(words, MODEL, status) is None
