"""Requests with pictures: the same bytes on the wire, made beside the event loop where they are large."""

import json
import threading
from dataclasses import replace

import pytest

from gradewire_server.domain.items import Image, Status
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.judges.remote import openai
from gradewire_server.judges.remote.endpoints import CHAT
from gradewire_server.judges.remote.errors import Reply, refusal_of_pictures
from gradewire_server.judges.remote.openai_dialect import Dialect, request_body
from gradewire_server.judges.remote.server import Question


@pytest.mark.parametrize(("size_bytes", "on_loop"), [(1_000, True), (200_000, False)])
async def test_large_bodies_are_written_on_a_thread(
    size_bytes: int,
    on_loop: bool,  # noqa: FBT001 - a column
) -> None:
    image = Image(b"\x89PNG" + bytes(size_bytes), "", "image/png")
    made_on = []
    posted = []

    class Client:
        async def send(self, _: str, body: bytes) -> Reply:
            posted.append(body)
            return Reply(200, b"", "", "http://h/v1")

    def made(question: Question, model: str, dialect: Dialect) -> dict[str, object]:
        made_on.append(threading.current_thread())
        return request_body(question, model, dialect)

    server = openai.OpenAIServer(Client(), "é", "auto", api=replace(CHAT, request_body=made))
    question = Question(JudgePrompt((), lead="?", images=(image,)), max_tokens=5)
    await server._send(question, Dialect())
    assert (made_on == [threading.current_thread()]) is on_loop
    assert json.loads(posted[0]) == request_body(question, "é", Dialect())
    assert "é".encode() in posted[0]


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
