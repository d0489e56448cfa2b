"""Pictures of rows: embedded or linked, never fetched; what only calls itself one stays text."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.pages.pages import Elements, simple_rows
from tests.cli.pages.pixels import data_uri, png
from tests.cli.pages.samples import HOSTILE, report_of

from gradewire_cli.pages import pictures
from gradewire_cli.pages.agreement import render
from gradewire_cli.pages.pictures import MAX_PICTURE_BYTES, Album, ShownPicture

if TYPE_CHECKING:
    from gradewire_cli.pages.agreement_input import ReportRow


@pytest.fixture
def album(tmp_path: Path) -> Album:
    (tmp_path / "rows").mkdir()
    return Album(tmp_path / "rows", tmp_path / "pages")


def shown(album: Album, named: str) -> ShownPicture:
    found = album.picture(named)
    assert found is not None
    return found


def page_with(named: str, folder: Path | None = None) -> Elements:
    rows: list[ReportRow] = [replace(row, picture=named) for row in simple_rows()]
    return Elements(render(report_of(rows, folder=folder), folder or Path()).decode())


def test_a_row_without_a_picture_shows_none(album: Album) -> None:
    assert album.picture("") is None
    assert album.picture("  ") is None


def test_a_data_uri_is_shown_as_the_kind_that_its_bytes_are(album: Album) -> None:
    assert shown(album, data_uri(png())).source == data_uri(png())
    assert shown(album, data_uri(png(), "image/x-icon").replace("data:", "DATA:")).source == data_uri(png())
    assert album.embedded_characters == 2 * len(data_uri(png()))


@pytest.mark.parametrize(
    "named",
    [
        "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
        data_uri(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "image/svg+xml"),
        data_uri(b"<script>alert(1)</script>"),
        "data:image/png,<script>alert(1)</script>",
        'data:image/png"onerror="alert(1);base64,AAAA',
        "data:image/png;base64,not base64!",
        data_uri(b""),
        "javascript:alert(1)",
        "javascript:alert(1)//x.png",
        "vbscript:x.png",
        "file:///etc/hostname.png",
        "ftp://192.0.2.1/x.png",
        "//192.0.2.1/share/x.png",
        r"\\192.0.2.1\share\x.png",
        "https://",
        "https:///x.png",
        "https://[/x.png",
        'https://a.example/x.png" onerror="alert(1)',
        "https://a.example/\u202egnp.x",
        "http://a.example/" + "x" * 3000,
        "/etc/passwd",
        "no\x00such.png",
        "x" * 5000 + ".png",
        "4711",
        *HOSTILE,
    ],
)
def test_what_is_no_picture_and_no_address_is_neither_shown_nor_linked(tmp_path: Path, named: str) -> None:
    found = Album(tmp_path, tmp_path).picture(named)
    assert found is not None
    assert (found.source, found.link) == ("", "")
    assert len(found.name) < 2000
    elements = page_with(named, tmp_path)
    assert "img" not in elements.names
    assert elements.names.count("script") == 1
    for name, value in elements.attributes:
        assert not name.startswith("on")
        assert name != "href" or (value or "").startswith("#")


def test_an_address_is_linked_and_nothing_is_loaded_from_it() -> None:
    url = "https://images.example/val/1.jpg?size=large&x='1'"
    elements = page_with(url)
    assert elements.attributes.count(("href", url)) == 2  # of the two disagreements
    assert "img" not in elements.names
    assert f"Picture {url} (not fetched)" in " ".join(elements.text.split())


def test_a_file_beside_the_rows_is_embedded_and_linked_from_the_page(album: Album, tmp_path: Path) -> None:
    path = tmp_path / "rows" / "val 1:2#.png"
    path.write_bytes(png())
    for named in (path.name, str(path)):
        found = shown(album, named)
        assert found.source == data_uri(png())
        assert found.link == "../rows/val%201%3A2%23.png"
        assert (tmp_path / "pages" / unquote(found.link)).resolve() == path
    # Relative to the page's own folder a colon would make a scheme of the name.
    (tmp_path / "rows" / "javascript:x.png").write_bytes(png())
    assert shown(Album(tmp_path / "rows", tmp_path / "rows"), "javascript:x.png").link == "javascript%3Ax.png"


def test_a_file_elsewhere_is_linked_and_not_embedded(album: Album, tmp_path: Path) -> None:
    (tmp_path / "private.png").write_bytes(png())
    (tmp_path / "rows" / "link.png").symlink_to(tmp_path / "private.png")
    for named in ("../private.png", str(tmp_path / "private.png"), "link.png"):
        found = shown(album, named)
        assert (found.source, found.link) == ("", "../private.png")
        assert "outside the input's folder" in found.note
    assert album.embedded_characters == 0


def test_files_that_are_no_pictures_stay_text(album: Album, tmp_path: Path) -> None:
    (tmp_path / "rows" / "page.png").write_text("<script>alert(1)</script>")
    (tmp_path / "rows" / "drawing.svg").write_text("<svg/>")
    (tmp_path / "rows" / "folder.png").mkdir()
    os.mkfifo(tmp_path / "rows" / "pipe.png")
    for named in ("page.png", "drawing.svg", "folder.png", "pipe.png", "gone.png"):
        found = shown(album, named)
        assert (found.source, found.link) == ("", "")
        assert found.name == named


def test_a_large_picture_is_linked_and_a_page_holds_so_much_of_them(
    album: Album, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows" / "large.png").write_bytes(png(padding=MAX_PICTURE_BYTES))
    found = shown(album, "large.png")
    assert (found.source, found.link, found.note) == ("", "../rows/large.png", "too large to show")
    assert shown(album, data_uri(png(padding=MAX_PICTURE_BYTES))).source == ""
    assert shown(album, data_uri(png(padding=3 * MAX_PICTURE_BYTES))).source == ""
    monkeypatch.setattr(pictures, "MAX_EMBEDDED_CHARACTERS", 2 * len(data_uri(png())) + 10)
    sources = [shown(album, data_uri(png())).source for _ in range(3)]
    assert [bool(source) for source in sources] == [True, True, False]


def test_pictures_take_no_room_from_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = simple_rows()
    plain = render(report_of(rows))
    monkeypatch.setattr("gradewire_cli.pages.page.MAX_BYTES", len(plain) + 5000)
    large = data_uri(png(padding=100_000))
    page = render(report_of([replace(row, picture=large) for row in rows])).decode()
    assert page.count("<article") == plain.decode().count("<article") == 2
    assert page.count(large) == 2


@given(st.text(max_size=60) | st.text(st.sampled_from("htps:/.\\data;base64,image\"'<> \x00pngjfile"), max_size=60))
def test_any_name_is_shown_without_a_failure_and_links_only_to_the_web(named: str) -> None:
    found = Album(Path("/nonexistent"), Path("/nonexistent")).picture(named)
    if found is not None:
        assert found.source == ""
        assert not found.link or found.link.lower().startswith(("http://", "https://"))
