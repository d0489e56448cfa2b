"""Members of .eval archives: both ways to compress, and archives that are bombs, damaged or closed."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from gradewire.cli.input.official import inspect_archive
from gradewire.cli.input.official.inspect_archive import UnreadableMemberError, loaded_member, opened_archive
from gradewire.cli.problems import InputError

LOG = Path(__file__).parents[4] / "support/harness_logs/inspect/eval/sums.eval"
NAME = "samples/1_epoch_1.json"


def test_members_that_inspect_compressed_by_zstandard_are_read() -> None:
    with opened_archive(str(LOG)) as archive:
        assert archive.getinfo(NAME).compress_type == 93
        assert loaded_member(archive, NAME)["input"] == "2 + 2 ="


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_of_older_versions_are_read(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "old.eval"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("a.json", json.dumps({"b": "c" * 999}))
    with opened_archive(str(path)) as archive:
        assert loaded_member(archive, "a.json") == {"b": "c" * 999}


def test_without_pyarrow_the_ways_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        opened_archive(str(LOG)) as archive,
        pytest.raises(InputError, match=r"pip install 'gradewire\[parquet\]'; or .*inspect log convert LOG --to json"),
    ):
        loaded_member(archive, NAME)


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * 5_000_000)
        archive.writestr("b.json", b"[]")
    monkeypatch.setattr(inspect_archive, "MAX_MEMBER_BYTES", 1 << 20)
    with opened_archive(str(path)) as archive:
        with pytest.raises(UnreadableMemberError, match="would unpack to 4 MiB, and members up to 1 MiB are read"):
            loaded_member(archive, "a.json")
        assert loaded_member(archive, "b.json") == []
    monkeypatch.setattr(inspect_archive, "MAX_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(InputError, match="would unpack to 0 GiB"), opened_archive(str(path)):
        pass


def test_a_member_that_claims_too_little_is_damaged(tmp_path: Path) -> None:
    """What a bomb would do to pass the check of its claims: nothing is unpacked beyond them."""
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * 5_000_000)
    content = path.read_bytes().replace((5_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(content)
    with (
        opened_archive(str(path)) as archive,
        pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"),
    ):
        loaded_member(archive, "a.json")


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_told_however_it_is_compressed(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("a.json", json.dumps(list(range(999))))
    content = bytearray(path.read_bytes())
    begin = content.index(b"a.json") + len(b"a.json")
    content[begin + 4 : begin + 60] = bytes(byte ^ 0xFF for byte in content[begin + 4 : begin + 60])
    path.write_bytes(content)
    with (
        opened_archive(str(path)) as archive,
        pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"),
    ):
        loaded_member(archive, "a.json")


def test_a_member_that_claims_to_be_packed_in_any_size_takes_no_memory_for_it() -> None:
    with opened_archive(str(LOG)) as archive:
        archive.getinfo(NAME).compress_size = 1 << 62
        with pytest.raises(UnreadableMemberError, match="cannot be unpacked"):
            loaded_member(archive, NAME)


@pytest.mark.parametrize(("content", "message"), [(b"", "no whole"), (b"PK\x03\x04 and no more", "no whole")])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message), opened_archive(str(path)):
        pass
    with pytest.raises(InputError, match="No such file"), opened_archive(str(tmp_path / "none.eval")):
        pass


def test_text_that_is_no_json_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", b"{")
        archive.writestr("b.json", b"[" * 100_000)
    with opened_archive(str(path)) as archive:
        for name in ("a.json", "b.json"):
            with pytest.raises(UnreadableMemberError, match="is not JSON"):
                loaded_member(archive, name)


def test_a_member_that_is_not_what_its_checksum_says_is_damaged() -> None:
    """Zstandard's stream has none of its own as inspect writes it."""
    with opened_archive(str(LOG)) as archive:
        archive.getinfo(NAME).CRC ^= 1
        with pytest.raises(UnreadableMemberError, match=r"damaged|cannot be unpacked"):
            loaded_member(archive, NAME)
