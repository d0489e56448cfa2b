"""Where a picture's bytes come from, and from where never."""

import base64

import pytest
from tests.server.judges.images.pictures import picture

from gradewire_server.domain.image import Image
from gradewire_server.judges.images.errors import ImageError
from gradewire_server.judges.images.sources import check_address, content, is_address
from gradewire_server.settings.images import ImageConfig

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
    with pytest.raises(ValueError, match="is no host"):
        ImageConfig(hosts=(name,))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (Image(), "neither data nor uri"),
        (Image(data=PNG), "bytes, at most 50"),
        (Image(uri=DATA_URI), "bytes, at most 50"),
        (Image(uri="data:image/png;base64,a*b"), "base64 cannot be read"),
        (Image(uri="data:image/png;base64,é"), "base64 cannot be read"),
        (Image(uri="data:text/html;base64,PGI+"), "does not begin as"),
        (Image(uri="data:image/svg+xml,<svg>"), "does not begin as"),
        (Image(uri="data:"), "does not begin as"),
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
    with pytest.raises(ImageError, match="its uri says image/png, its media_type 'image/gif'"):
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
    with pytest.raises(ImageError, match=r"uri: .*(send the bytes)"):
        check_address(uri, HOSTS)
    with pytest.raises(ImageError):
        check_address(uri, ())
