"""What must hold of whatever bytes the gateway reads, and the steps that reading takes."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from gradewire.errors import InvalidRequest
from gradewire.results import Status
from gradewire.rewards import Extraction, Reward, extract_answer, posts
from gradewire.rewards.answer import MAX_READ_CHARACTERS
from gradewire_gateway.problems import ProblemError
from gradewire_gateway.rewards import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH
from gradewire_gateway.wire import all_methods, read_message, read_object

KINDS: Final[tuple[type[Message], ...]] = tuple({method.request_type: None for method in all_methods()})
EXTRACTIONS: Final[tuple[Extraction, ...]] = ("auto", "boxed", "tagged", "phrase", "whole")
FORMS: Final = {OPENRLHF_PATH: posts.OPENRLHF, SLIME_PATH: posts.slime_form("reward"), VERIFY_PATH: posts.NEMO_GYM}
PLAIN_FORMS: Final = {SEED_PATH: posts.seed_session, AGGREGATE_PATH: posts.aggregate_metrics}
_STRICTER: Final = ("occurs twice", "is set twice", "is not a JSON object", "must be an object")
"""Why the gateway refuses what protobuf's own reader takes."""


def check_message(data: bytes, kind: type[Message]) -> bool:
    """Assert that a message is read as protobuf reads it, or refused in words; return True where it is read."""
    read = refused = None
    try:
        read = read_message(data, kind)
    except ProblemError as error:
        refused = error.problem
        assert json.loads(bytes(refused.response("id").body))["detail"], "it can be sent"
    try:
        expected: Message | None = json_format.Parse(data, kind())
    except Exception:  # noqa: BLE001 - it lets many kinds through: of UTF-8, of numbers, of recursion
        expected = None
    if read is not None:
        assert expected is not None
        assert read.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
    elif expected is not None:
        assert refused is not None
        assert refused.status == 413 or any(why in refused.detail for why in _STRICTER), refused.detail
    return read is not None


def check_object(data: bytes) -> bool:
    """Assert that an object is read as Python reads it, or refused in words; return True where it is read."""
    try:
        found = read_object(data)
    except ProblemError as error:
        error.problem.response("id")
        return False
    assert repr(found) == repr(json.loads(data.decode()))
    return True


def _sent(form: Callable[[], posts.PostReply]) -> None:
    """Assert that a reply can be sent, as the gateway does: ASCII, and numbers that JSON has, or it is refused."""
    with suppress(ValueError):
        json.dumps(form().body, allow_nan=False).encode("ascii")


def check_post(data: bytes, path: str) -> bool:
    """Assert that a post is read, its answers are found and it is answered, or refused in words; True: it is read."""
    try:
        posted = read_object(data)
        if path in PLAIN_FORMS:
            _sent(lambda: PLAIN_FORMS[path](posted))
            return True
        form = FORMS[path]
        samples = form.read(posted, "")
        for sample in samples:
            check_extraction(sample.completion)
        for reward in (Reward(0.5, Status.OK), Reward(None, Status.TIMEOUT)):
            _sent(lambda reward=reward: form.write(posted, [reward] * len(samples)))  # type: ignore[misc]
    except (ProblemError, InvalidRequest, RecursionError):  # the gateway answers these alike
        return False
    return True


def check_extraction(completion: Any) -> None:
    """Assert that each setting finds an answer, or says why there is none, and that what it finds stands there."""
    whole = completion if isinstance(completion, str) else None
    for extraction in EXTRACTIONS:
        answer = extract_answer(completion, extraction)
        assert bool(answer.text) == (answer.position != "nothing") == (not answer.reason), answer
        assert answer.text == answer.text.strip()
        if whole is not None:
            assert len(answer.text) <= MAX_READ_CHARACTERS
            # "auto" joins lists and decodes JSON; tests/proto/final_answer checks its offsets.
            assert extraction == "auto" or _plain(answer.text) in _plain(whole), answer


def _plain(text: str) -> str:
    return "".join(text.split())


def steps(work: Callable[[], object]) -> int:
    """Return how many calls of functions, in Python and in C, some work takes."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
