"""Which bytes are a picture."""

import asyncio
import base64
import hashlib
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.pictures import (
    SVG,
    jpeg_of_many_scans,
    moving,
    picture,
    png_bomb,
    png_that_says,
    webp_that_says,
)
from tests.server.judges.scripted_service import ScriptedService, choose, generate
from tests.support.examples import example_count
from tests.support.judges.scripted import ScriptedJudge, ScriptedJudges, judge_status

from gradewire_server.domain.items import Failure, Image, Status
from gradewire_server.domain.judge import Choose
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.judges.images import ImageError, check_address, content, decode, is_address
from gradewire_server.settings.judge import ImageConfig, JudgeConfig

MOST_PIXELS = 25_000_000


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_whole_pictures_have_the_type_that_their_bytes_say(kind: str) -> None:
    media_type = f"image/{kind.lower()}"
    content = picture(kind)
    assert decode(content, "", MOST_PIXELS) == media_type
    assert decode(content, media_type, MOST_PIXELS) == media_type
    assert decode(content, media_type, 48) == media_type
    with pytest.raises(ImageError, match="8 x 6 pixels, but at most 47"):
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
    "empty": (b"", "is not an image"),
    "text": (b"a cat on a mat", "is not an image"),
    "zeros": (bytes(1000), "is not an image"),
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
    "webp's beginning": (picture("WEBP")[:20], "header cannot be parsed"),
    "webp cut short": (picture("WEBP", (300, 300), quality=90)[:-60], "damaged or cut short"),
    "webp of another kind": (b"RIFF\0\0\0\0WEBPXXXX" + bytes(40), "header cannot be parsed"),
    "webp with a canvas of 16k": (webp_that_says(16_383, 16_383), "16383 x 16383 pixels"),
    "gif cut short": (picture("GIF", (300, 300))[:30], "damaged or cut short"),
    "moving gif": (moving("GIF"), "is animated"),
    "moving png": (moving("PNG"), "is animated"),
    "moving webp": (moving("WEBP"), "is animated"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_none_is_named(name: str) -> None:
    content, why = BAD[name]
    with pytest.raises(ImageError, match=why):
        decode(content, "", MOST_PIXELS)


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        ("image/jpeg", "is image/png, but its media type says 'image/jpeg'"),
        ("text/html", "media type says 'text/html'"),
    ],
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
    assert found.startswith(("image/", "is ", "has ", "is animated"))


RED, BLUE = picture(colour="red"), picture(colour="blue")


def seeing(**limits: Any) -> ScriptedService:
    """A judge with eyes."""
    source = ScriptedJudges("scripted")
    source.known["scripted"] = ScriptedJudge(replace(judge_status("scripted"), sees_images=True), source.script)
    return ScriptedService(config=JudgeConfig(images=ImageConfig(**limits)), source=source)


def showing(*images: Image) -> Choose:
    need = choose()
    return replace(need, prompt=replace(need.prompt, images=images))


async def test_a_judge_without_eyes_is_not_asked(bench: ScriptedService) -> None:
    for need in (showing(Image(data=RED)), showing(Image(data=SVG))):
        answer = (await bench.service.choose(need)).answer
        assert isinstance(answer, Failure)
        assert answer.status is Status.JUDGE_CANNOT_SEE
        assert "image=true" in answer.message
    text = replace(generate(), prompt=showing(Image(data=RED)).prompt)
    answer = (await bench.service.generate(text)).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.JUDGE_CANNOT_SEE
    assert bench.source.script.asked == []
    assert not isinstance((await bench.service.choose(choose())).answer, Failure)


async def test_pictures_come_checked_and_are_part_of_a_verdicts_name() -> None:
    bench = seeing()
    uri = f"data:image/png;base64,{base64.b64encode(RED).decode()}"
    first = await bench.service.choose(showing(Image(data=RED)))
    again = await bench.service.choose(showing(Image(uri=uri)))
    other = await bench.service.choose(showing(Image(data=BLUE)))
    both = await bench.service.choose(showing(Image(data=BLUE), Image(data=RED)))
    turned = await bench.service.choose(showing(Image(data=RED), Image(data=BLUE)))
    without = await bench.service.choose(choose())
    sources = [reply.source for reply in (first, again, other, both, turned, without)]
    assert sources == [AnswerSource.COMPUTED, AnswerSource.MEMORY, *[AnswerSource.COMPUTED] * 4]
    seen = [need.prompt.images for need in bench.source.script.asked]
    assert seen[0] == (Image(data=RED, media_type="image/png", digest=hashlib.sha256(RED).hexdigest()),)
    assert [image.data for image in seen[2]] == [BLUE, RED]
    assert seen[4] == ()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ((Image(data=RED), Image(data=SVG)), r"images\[1\]: is SVG"),
        ((Image(data=RED, media_type="image/gif"),), r"images\[0\]: is image/png"),
        ((Image(data=RED),) * 300, "images: there are 300 images, but at most 2 are allowed"),
        ((Image(data=picture(size=(300, 300))),), r"images\[0\]: has 300 x 300 pixels"),
        ((Image(data=bytes(3000)),), r"images\[0\]: has 3000 bytes"),
        ((Image(uri="https://169.254.169.254/a.png"),), r"images\[0\]: uri: .* images from the host '169.254.169.254'"),
        ((Image(uri="file:///etc/passwd"),), r"images\[0\]: uri: .* fetches nothing"),
    ],
)
async def test_what_is_wrong_with_one_is_named_and_nothing_is_asked(images: tuple[Image, ...], message: str) -> None:
    bench = seeing(max_count=2, max_bytes=2000, max_pixels=10_000, hosts=("images.example.org",))
    answer = (await bench.service.choose(showing(*images))).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.INVALID_INPUT
    with pytest.raises(ValueError, match=message):
        raise ValueError(answer.message)
    assert bench.source.script.asked == []
    assert not isinstance((await bench.service.choose(showing(Image(data=RED)))).answer, Failure)


async def test_a_picture_that_was_good_is_still_refused_under_another_type() -> None:
    bench = seeing()
    for claimed in ("", "image/png"):
        good = showing(Image(data=RED, media_type=claimed))
        assert not isinstance((await bench.service.choose(good)).answer, Failure)
    answer = (await bench.service.choose(showing(Image(data=RED, media_type="image/gif")))).answer
    assert isinstance(answer, Failure)
    assert answer.message.startswith("images[0]: is image/png, but its media type says 'image/gif'")


async def test_an_address_is_handed_on_where_its_host_is_allowed() -> None:
    bench = seeing(hosts=("images.example.org",))
    address = "https://images.example.org/a.png"
    await bench.service.choose(showing(Image(uri=address)))
    await bench.service.choose(showing(Image(uri=address)))
    await bench.service.choose(showing(Image(uri=f"{address}?b")))
    shown = [need.prompt.images[0] for need in bench.source.script.asked]
    assert [(image.uri, image.data) for image in shown] == [(address, b""), (f"{address}?b", b"")]
    assert shown[0].digest != shown[1].digest


async def test_many_at_a_time_each_get_their_own_answer() -> None:
    bench = seeing()
    needs = [showing(Image(data=RED if n % 2 else SVG)) for n in range(40)]
    answers = [reply.answer for reply in await asyncio.gather(*map(bench.service.choose, needs))]
    assert [isinstance(answer, Failure) for answer in answers] == [not n % 2 for n in range(40)]


async def test_a_deadline_counts_while_pictures_are_checked() -> None:
    bench = seeing()
    answer = (await bench.service.choose(showing(Image(data=RED)), deadline_s=time.monotonic() - 1)).answer
    assert isinstance(answer, Failure)
    assert answer.status is Status.TIMEOUT


PNG = picture()
DATA_URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
HOSTS = ("images.example.org", "other.example.org:8443")


def test_bytes_are_taken_as_they_are() -> None:
    assert content(Image(data=PNG, media_type=" Image/PNG "), 1000) == (PNG, "image/png")
    assert content(Image(uri=DATA_URI), 1000) == (PNG, "image/png")
    assert content(Image(uri=DATA_URI.replace("data:image/png", "DATA:image/PNG"), media_type="image/png"), 1000) == (
        PNG,
        "image/png",
    )


def test_base64_in_lines_is_taken() -> None:
    in_lines = base64.encodebytes(PNG * 3).decode().replace("\n", "\r\n\t ")
    assert content(Image(uri=f"data:image/png;base64,{in_lines}"), 3 * len(PNG)) == (PNG * 3, "image/png")


def test_no_address_in_brackets_is_handed_on() -> None:
    # Python reads the host of both as ::1.
    for uri in ("https://[::1]/a.png", "https://evil.org[::1]/a.png", "https://evil.org[::1]:443/a.png"):
        with pytest.raises(ImageError, match="in brackets"):
            check_address(uri, ("::1", "[::1]"))


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "[::1]", "::1", "*.org", "a/b", "u@a", "é.org", "a:", "a:0", "a:x", "a:70000"]
)
def test_what_is_no_host_is_refused_at_start(name: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        ImageConfig(hosts=(name,))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (Image(), "neither data nor uri"),
        (Image(data=PNG), "bytes, but at most 50"),
        (Image(uri=DATA_URI), "bytes, but at most 50"),
        (Image(uri="data:image/png;base64,a*b"), "invalid base64"),
        (Image(uri="data:image/png;base64,é"), "invalid base64"),
        (Image(uri="data:text/html;base64,PGI+"), "must begin with"),
        (Image(uri="data:image/svg+xml,<svg>"), "must begin with"),
        (Image(uri="data:"), "must begin with"),
        (Image(uri="file:///etc/passwd"), "the server fetches nothing"),
        (Image(uri="/etc/passwd"), "the server fetches nothing"),
        (Image(uri="http://images.example.org/a.png"), "the server fetches nothing"),
        (Image(uri="ftp://images.example.org/a.png"), "the server fetches nothing"),
        (Image(uri="gopher://127.0.0.1:6379/_x"), "the server fetches nothing"),
        (Image(uri="javascript:alert(1)"), "the server fetches nothing"),
        (Image(uri="\x00https://images.example.org/a.png"), "the server fetches nothing"),
    ],
)
def test_anything_else_is_named(image: Image, message: str) -> None:
    assert not is_address(image)
    with pytest.raises(ImageError, match=message):
        content(image, 50)


def test_a_uri_and_its_sender_say_the_same() -> None:
    with pytest.raises(ImageError, match="uri says image/png, but media_type says 'image/gif'"):
        content(Image(uri=DATA_URI, media_type="image/gif"), 1000)


@pytest.mark.parametrize(
    "uri",
    [
        "https://images.example.org/a.png?size=2#top",
        "HTTPS://Images.Example.org:443/a",
        "https://other.example.org:8443/a.png",
    ],
)
def test_addresses_of_allowed_hosts_are_handed_on(uri: str) -> None:
    assert is_address(Image(uri=uri))
    check_address(uri, HOSTS)


@pytest.mark.parametrize(
    "uri",
    [
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/a.png",
        "https://[::1]/a.png",
        "https://evil.example.org/a.png",
        "https://images.example.org.evil.org/a.png",
        "https://evil.org/images.example.org",
        "https://images.example.org@evil.org/a.png",
        "https://user:word@images.example.org/a.png",
        "https://images.example.org:8443/a.png",
        "https://other.example.org/a.png",
        "https://images.example.org\\@evil.org/a.png",
        "https://images.example.org\t.evil.org/a.png",
        "https://images.example.org /a.png",
        "https://images.ex\u0430mple.org/a.png",  # a Cyrillic letter
        "https://images.example.org:port/a.png",
        "https://images.example.org:0/a.png",
        "https://images.example.org:00000/a.png",
        "https://images.example.org./a.png",
        "https://evil.org[images.example.org]/a.png",
        "https:///a.png",
        "https://",
        "https://images.example.org/" + "a" * 3000,
    ],
)
def test_all_others_are_not(uri: str) -> None:
    with pytest.raises(ImageError, match=r"uri: .*(Send the image's bytes)"):
        check_address(uri, HOSTS)
    with pytest.raises(ImageError):
        check_address(uri, ())
