"""Pictures as people hold them."""

import hashlib
import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from gradewire._input.images import image_messages, local_picture, picture_digest
from gradewire._input.values import UnreadableValueError
from gradewire.items import Item, ItemProblem, encode_item

PNG = b"\x89PNG\r\n\x1a\nnot much"
DATA_URI = "data:image/png;base64,AAAA"
ADDRESS = "https://images.example.org/a.png"
URIS = (DATA_URI, ADDRESS, "https://images.example.org/\udcff.png")


def test_every_usual_form_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    values: list[Any] = [PNG, bytearray(PNG), path, {"bytes": PNG, "path": "b.png"}]
    assert [message.data for message in image_messages(values)] == [PNG] * 4
    assert [message.uri for message in image_messages((DATA_URI, ADDRESS))] == [DATA_URI, ADDRESS]
    assert [message.data for message in image_messages(PNG)] == [PNG]
    assert image_messages([None]) == image_messages(()) == []


def test_a_picture_of_pillow_is_sent_as_png() -> None:
    (message,) = image_messages([Pillow.new("RGB", (3, 2), "red")])
    with Pillow.open(io.BytesIO(message.data)) as sent:
        assert (sent.format, sent.size, sent.getpixel((0, 0))) == ("PNG", (3, 2), (255, 0, 0))


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "P", "L", "LA", "I;16", "1"])
def test_modes_that_files_have_are_sent_whether_or_not_png_has_them(mode: str) -> None:
    (message,) = image_messages(Pillow.new(mode, (3, 2)))
    with Pillow.open(io.BytesIO(message.data)) as sent:
        sent.load()
        assert (sent.format, sent.size) == ("PNG", (3, 2))


@pytest.mark.parametrize("nothing", [None, (), "", float("nan"), [None], [float("nan")]])
def test_a_missing_picture_is_none(nothing: Any) -> None:
    assert image_messages(nothing) == []


def test_an_array_in_place_of_pictures_is_that_items_problem() -> None:
    item = {"references": ["a"], "prediction": "b", "images": np.zeros((2, 2, 3), np.uint8)}
    problem = encode_item(0, item, max_bytes=1000, images=True)
    assert isinstance(problem, ItemProblem)
    assert problem.message.startswith("items[0].images[0] is a ndarray: give bytes")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"\[1\] is a float"),
        ("https://\ud800", r"\[1\] is an address that cannot be encoded"),
        (Path("/no/such/file.png"), r"\[1\] cannot be read: No such file"),
        ({"path": "/etc/hostname", "bytes": None}, r"\[1\] is a mapping without bytes"),
        (Path("a\0b"), r"\[1\] cannot be read: embedded null byte"),
        (Pillow.new("F", (2, 2)), r"\[1\] is a picture of mode F .*convert it to RGB"),
        (Pillow.new("RGB", (0, 0)), r"\[1\] is a picture of mode RGB .*empty"),
        (np.zeros((2, 2, 3), np.uint8), r"\[1\] is a ndarray"),
    ],
)
def test_anything_else_is_named(value: Any, message: str) -> None:
    with pytest.raises(UnreadableValueError, match=message):
        image_messages([PNG, value])


def test_an_item_carries_them_and_a_bad_one_is_that_items_problem() -> None:
    item = Item(references=["a"], prediction="b", images=[PNG, ADDRESS])
    for given in (item, {"references": ["a"], "prediction": "b", "images": [PNG, ADDRESS]}):
        message = encode_item(0, given, max_bytes=1000, images=True)
        assert not isinstance(message, ItemProblem)
        assert [(each.data, each.uri) for each in message.images] == [(PNG, b"".decode()), (b"", ADDRESS)]
    problem = encode_item(3, {"references": ["a"], "prediction": "b", "images": [3]}, max_bytes=1000, images=True)
    assert isinstance(problem, ItemProblem)
    assert problem.message.startswith("items[3].images[0] is a int")
    large = encode_item(
        0, {"references": ["a"], "prediction": "b", "images": [bytes(2000)]}, max_bytes=1000, images=True
    )
    assert isinstance(large, ItemProblem)
    assert large.too_large
    assert large.message.endswith("send fewer or smaller pictures")
    unshown = encode_item(0, {"references": ["a"], "prediction": "b", "images": [3]}, max_bytes=1000)
    assert not isinstance(unshown, ItemProblem)
    assert not unshown.images


def test_rows_send_files_beside_them_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "round.png").symlink_to("round.png")
    assert local_picture("images/a.png", folder) == PNG
    assert local_picture(str(folder / "images" / "a.png"), folder) == PNG
    assert [local_picture(f" {uri} ", folder) for uri in (DATA_URI, ADDRESS)] == [DATA_URI, ADDRESS]
    reasons = {
        "outside of the folder": ["../secret.png", str(tmp_path / "secret.png"), "link.png"],
        "no such file": ["images", "none.png", "4711"],
        "found by this name": ["\0"],
        "cannot be read|no such file|found by this name": ["round.png", "x" * 300],
    }
    for reason, names in reasons.items():
        for name in names:
            with pytest.raises(UnreadableValueError, match=reason):
                local_picture(name, folder)
            assert picture_digest(name, folder) == ""


def test_the_digest_is_that_of_what_is_sent(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    of_file = picture_digest("a.png", tmp_path)
    assert of_file == hashlib.blake2b(PNG, digest_size=16).hexdigest()
    (tmp_path / "copy.png").write_bytes(PNG)
    assert picture_digest("copy.png", tmp_path) == of_file
    (tmp_path / "a.png").write_bytes(PNG + b"more")
    digests = {of_file, picture_digest("a.png", tmp_path), *(picture_digest(uri, tmp_path) for uri in URIS)}
    assert len(digests) == 2 + len(URIS)


def test_the_digest_of_a_large_file_takes_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "large.png").open("wb") as stream:
        stream.truncate(64 << 20)
    tracemalloc.start()
    assert picture_digest("large.png", tmp_path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2 << 20
