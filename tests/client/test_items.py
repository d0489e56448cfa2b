"""Pictures as people hold them."""

import datetime as dt
import hashlib
import io
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from gradewire import Item as ItemItems
from gradewire._rows import UnreadableValueError
from gradewire.items import Item, ItemProblem, encode_item, image_messages, local_picture, picture_digest
from gradewire_proto.v1 import types_pb2

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
    for row in (item, {"references": ["a"], "prediction": "b", "images": [PNG, ADDRESS]}):
        message = encode_item(0, row, max_bytes=1000, images=True)
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
        "outside the folder": ["../secret.png", str(tmp_path / "secret.png"), "link.png"],
        "not in the folder": ["images", "none.png", "4711"],
        "the file's name is not valid": ["\0"],
        "cannot be read|no such file|the file's name is not valid": ["round.png", "x" * 300],
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


GOOD = {
    "references": ["a", "b"],
    "prediction": "c",
    "id": "x",
    "question": "q",
    "caption": "k",
    "group": "g",
    "captions": ["l"],
}


def problem(item: object, max_bytes: int = 10_000) -> ItemProblem:
    encoded = encode_item(7, item, max_bytes=max_bytes)
    assert isinstance(encoded, ItemProblem)
    return encoded


def test_mapping_and_item_give_the_same_message() -> None:
    from_mapping = encode_item(0, {**GOOD, "model": "not looked at"}, max_bytes=1000)
    assert from_mapping == types_pb2.Item(**GOOD)
    assert from_mapping == encode_item(0, ItemItems(**GOOD), max_bytes=1000)


def test_optional_fields_may_be_none_and_ids_numbers() -> None:
    encoded = encode_item(0, {"id": 17, "references": ("a",), "prediction": "", "question": None}, max_bytes=1000)
    assert encoded == types_pb2.Item(id="17", references=["a"])


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"references": {"a"}}, "items[7].references[0] is a set: give a string"),
        (
            {"references": ["a", True]},
            "items[7].references[1] is True, a truth value: write a string like the other answers",
        ),
        ({"references": ["a", None]}, "items[7].references[1] is missing (None or NaN): remove this entry"),
        ({"references": [["a"], "b"]}, "items[7].references[0] is a list in a list"),
        ({"references": {"value": "a"}}, "items[7].references is an object with the keys value: give a list"),
        ({"prediction": dt.date(2024, 5, 3)}, "items[7].prediction is a date (2024-05-03)"),
        ({"prediction": math.inf}, "items[7].prediction is inf: give a string or a finite number"),
        ({"references": ["a", "\ud800"]}, "items[7].references[1] has a lone surrogate (U+D800 at character 0)"),
        ({"prediction": "ab\udfff"}, "items[7].prediction has a lone surrogate (U+DFFF at character 2)"),
        ({"references": None}, "items[7].references is None: give a list of strings"),
        ({"prediction": b"\xff"}, "items[7].prediction is bytes: give a string"),
        ({"prediction": b"plain"}, "items[7].prediction is bytes: give a string"),
        ({"references": ["a", b"b"]}, "items[7].references[1] is bytes: give a string"),
        ({"synthetic_answers": (b"b",)}, "items[7].synthetic_answers[0] is bytes: give a string"),
        ({"question": b"q"}, "items[7].question is bytes: give a string"),
        ({"id": b"i"}, "items[7].id is bytes: give a string"),
        ({"question": object()}, "items[7].question is an object"),
        ({"id": "\ud800"}, "items[7].id has a lone surrogate"),
        ({"synthetic_answers": {"a": 1}}, "items[7].synthetic_answers is an object with the keys a"),
    ],
)
def test_problems_name_item_and_field(change: dict[str, object], part: str) -> None:
    for item in ({**GOOD, **change}, ItemItems(**{**GOOD, **change})):
        found = problem(item)
        assert part in found.message
        assert not found.too_large
        found.id.encode()


def test_a_missing_field_lists_what_is_there() -> None:
    assert problem({"refs": ["a"], "prediction": ""}).message == (
        "items[7].references is missing (found: prediction, refs): give a list of strings"
    )
    assert "is a list" in problem(["a"]).message


def test_too_large_is_told_apart() -> None:
    found = problem({**GOOD, "prediction": "x" * 200}, max_bytes=100)
    assert found.too_large
    assert "at most 100 fit" in found.message
    assert found.id == "x"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*GOOD, "synthetic_answers", "other"]), anything)
    | st.dictionaries(anything.filter(lambda key: isinstance(key, str | int)), anything, max_size=3)
    | anything
)
def test_nothing_that_is_given_raises(item: object) -> None:
    encoded = encode_item(0, item, max_bytes=1000)
    if isinstance(encoded, types_pb2.Item):
        assert types_pb2.Item.FromString(encoded.SerializeToString()) == encoded
    else:
        assert encoded.message.startswith("items[0]")


@pytest.mark.parametrize(
    ("references", "texts"),
    [
        ("a", ["a"]),
        (1989, ["1989"]),
        ([2.0, 2.5, np.int64(7), np.float32(0.5), np.str_("x")], ["2", "2.5", "7", "0.5", "x"]),
        (np.array(["a", "b"], dtype=object), ["a", "b"]),
        (np.array([1, 2]), ["1", "2"]),
        ("['a', 'b']", ["a", "b"]),
        (["['a', 'b']"], ["['a', 'b']"]),
        ("[0, 1]", ["[0, 1]"]),
        ([{"answer": "a", "answer_confidence": "yes"}, {"answer": "b"}], ["a", "b"]),
        ({"text": ["a", "b"], "answer_start": [0, 1]}, ["a", "b"]),
        ((), []),
    ],
)
def test_references_as_table_libraries_have_them(references: object, texts: list[str]) -> None:
    encoded = encode_item(0, {"references": references, "prediction": np.int64(2)}, max_bytes=1000)
    assert encoded == types_pb2.Item(references=texts, prediction="2")


@pytest.mark.parametrize("references", ["reference", "answers", "answer", "golden_answer"])
@pytest.mark.parametrize("prediction", ["pred", "response", "candidate"])
def test_other_usual_names(references: str, prediction: str) -> None:
    item = {references: "a", prediction: "b", "syn_ans": ["c"], "dataset": "d"}
    expected = types_pb2.Item(references=["a"], prediction="b", synthetic_answers=["c"], group="d")
    assert encode_item(0, item, max_bytes=1000) == expected
    named = {**item, "references": ["r"], "prediction": "p", "group": "g"}
    expected = types_pb2.Item(references=["r"], prediction="p", synthetic_answers=["c"], group="g")
    assert encode_item(0, named, max_bytes=1000) == expected


@pytest.mark.parametrize("answerable", [False, np.bool_(0), "false", "No", 0, 0.0])
@pytest.mark.parametrize(
    "references", [None, [], (), "", [""], math.nan, np.array([]), {"text": [], "answer_start": []}]
)
def test_a_question_without_an_answer_needs_no_references(answerable: object, references: object) -> None:
    expected = types_pb2.Item(prediction="a", answerable=False)
    row = {"prediction": "a", "answerable": answerable}
    assert encode_item(0, row, max_bytes=1000) == expected
    assert encode_item(0, {**row, "references": references}, max_bytes=1000) == expected


def test_whether_there_is_an_answer_is_only_sent_if_given() -> None:
    assert not encode_item(0, ItemItems(**GOOD), max_bytes=1000).HasField("answerable")  # type: ignore[union-attr]
    assert encode_item(0, ItemItems(references=[], prediction="", answerable=False), max_bytes=1000) == types_pb2.Item(
        answerable=False
    )
    assert encode_item(0, {**GOOD, "answerable": None}, max_bytes=1000) == types_pb2.Item(**GOOD)
    assert encode_item(0, {**GOOD, "answerable": "true"}, max_bytes=1000) == types_pb2.Item(**GOOD, answerable=True)
    kept = encode_item(0, {**GOOD, "answerable": False}, max_bytes=1000)
    assert kept == types_pb2.Item(**GOOD, answerable=False), "the server says that these contradict each other"
    assert problem({**GOOD, "answerable": "unsure"}).message == ("items[7].answerable is 'unsure': give true or false")
    assert "references is missing" in problem({"prediction": "a", "answerable": True}).message
