"""Which bytes are a picture."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.images.pictures import (
    SVG,
    jpeg_of_many_scans,
    moving,
    picture,
    png_bomb,
    png_that_says,
    webp_that_says,
)
from tests.support.examples import example_count

from gradewire_server.judges.images.decoding import decode
from gradewire_server.judges.images.errors import ImageError

MOST_PIXELS = 25_000_000


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_whole_pictures_have_the_type_that_their_bytes_say(kind: str) -> None:
    media_type = f"image/{kind.lower()}"
    content = picture(kind)
    assert decode(content, "", MOST_PIXELS) == media_type
    assert decode(content, media_type, MOST_PIXELS) == media_type
    assert decode(content, media_type, 48) == media_type
    with pytest.raises(ImageError, match="8 x 6 pixels, at most 47"):
        decode(content, media_type, 47)


@pytest.mark.parametrize(
    "content",
    [
        picture("WEBP", lossless=True),
        picture("WEBP", quality=50),
        picture("JPEG", progressive=True),
        picture("JPEG", (64, 64), "green", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"),
        webp_that_says(8, 6),
    ],
)
def test_other_forms_of_the_same_types_are_taken(content: bytes) -> None:
    assert decode(content, "", MOST_PIXELS).startswith("image/")


BAD = {
    "empty": (b"", "is no picture"),
    "text": (b"a cat on a mat", "is no picture"),
    "zeros": (bytes(1000), "is no picture"),
    "svg": (SVG, "is SVG, a document"),
    "bare svg": (b"\n <svg onload='x'>", "is SVG, a document"),
    "html": (b"<!DOCTYPE html><script>", "is HTML"),
    "pdf": (b"%PDF-1.7", "is PDF"),
    "bmp": (picture("BMP"), "is BMP"),
    "tiff": (picture("TIFF"), "is TIFF"),
    "avif": (b"\0\0\0\x20ftypavif" + bytes(40), "is AVIF or HEIC"),
    "png's beginning": (picture()[:8], "damaged or cut short"),
    "png cut short": (picture(size=(200, 200))[:-40], "damaged or cut short"),
    "png of another size": (png_that_says(9, 900), "damaged or cut short"),
    "png of no size": (png_that_says(0, 6), "damaged or cut short"),
    "png of 100 megapixels": (png_that_says(10_000, 10_000), "10000 x 10000 pixels"),
    "bomb": (png_bomb(20_000, 5_000), "20000 x 5000 pixels"),
    "jpeg's beginning": (b"\xff\xd8\xff", "damaged or cut short"),
    "jpeg cut short": (picture("JPEG", (400, 400))[:-400], "damaged or cut short"),
    "jpeg of many scans": (jpeg_of_many_scans(200), "more than 64 scans"),
    "webp's beginning": (picture("WEBP")[:20], "header cannot be read"),
    "webp cut short": (picture("WEBP", (300, 300), quality=90)[:-60], "damaged or cut short"),
    "webp of another kind": (b"RIFF\0\0\0\0WEBPXXXX" + bytes(40), "header cannot be read"),
    "webp with a canvas of 16k": (webp_that_says(16_383, 16_383), "16383 x 16383 pixels"),
    "gif cut short": (picture("GIF", (300, 300))[:30], "damaged or cut short"),
    "moving gif": (moving("GIF"), "moves"),
    "moving png": (moving("PNG"), "moves"),
    "moving webp": (moving("WEBP"), "moves"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_none_is_named(name: str) -> None:
    content, why = BAD[name]
    with pytest.raises(ImageError, match=why):
        decode(content, "", MOST_PIXELS)


@pytest.mark.parametrize(
    ("claimed", "message"), [("image/jpeg", "is image/png, not 'image/jpeg'"), ("text/html", "not 'text/html'")]
)
def test_bytes_of_another_type_than_they_are_said_to_be_are_refused(claimed: str, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        decode(picture(), claimed, MOST_PIXELS)


@given(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF"]), st.data())
@settings(max_examples=example_count(150))
def test_any_damage_is_named_or_harmless(kind: str, data: st.DataObject) -> None:
    content = bytearray(picture(kind, (16, 16)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    try:
        found = decode(bytes(content[:cut]), "", 10_000)
    except ImageError as error:
        found = str(error)
    assert found.startswith(("image/", "is ", "has ", "moves"))
