"""Requests with pictures: the same bytes on the wire, made beside the event loop where they are large."""

import json
import threading
from collections.abc import Mapping

import pytest

from gradewire_server.domain.image import Image
from gradewire_server.judges.remote.pictures import body_with, url_of


@pytest.mark.parametrize(("size_bytes", "on_loop"), [(1_000, True), (200_000, False)])
async def test_large_bodies_are_written_on_a_thread(size_bytes: int, on_loop: bool) -> None:  # noqa: FBT001 - a column
    images = (Image(b"\x89PNG" + bytes(size_bytes), "", "image/png"),)
    made_on = []

    def make() -> Mapping[str, object]:
        made_on.append(threading.current_thread())
        return {"model": "é", "messages": [{"content": url_of(images[0])}], "temperature": 0}

    body = await body_with(images, make)
    assert (made_on == [threading.current_thread()]) is on_loop
    assert isinstance(body, bytes) is not on_loop
    written = json.loads(body) if isinstance(body, bytes) else body
    assert written == {"model": "é", "messages": [{"content": url_of(images[0])}], "temperature": 0}
