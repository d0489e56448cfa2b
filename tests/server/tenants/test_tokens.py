"""A tokens file that changes under a running server."""

import logging
import os
from pathlib import Path

import pytest

from gradewire_server.domain.caller import Scope
from gradewire_server.tenants.tenant import TokensFileError
from gradewire_server.tenants.tokens import TokensFile

FIRST = '[a]\ntoken = "first"\nquota_tokens_per_minute = 10\n'


def write(path: Path, text: str) -> None:
    """As an operator should: whole, under another name, then in place."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


def write_in_place(path: Path, data: bytes) -> None:
    """As an operator should not: the file is the same one."""
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))


def remove(path: Path) -> None:
    """As a volume that is not mounted for a moment."""
    path.unlink()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "tokens.toml"
    write(found, FIRST)
    return found


async def test_a_change_is_seen_and_a_token_that_is_gone_counts_no_more(path: Path) -> None:
    file = TokensFile(path)
    caller = file.table.find("first")
    assert caller is not None
    assert (caller.key, caller.namespace) == ("a", "a")
    write(path, '[a]\ntoken = "second"\nscopes = ["score"]\n[b]\ntoken = "third"\nnamespace = "of-b"\nweight = 3\n')
    assert file.table.find("first") is not None, "nobody has looked yet"
    await file.look()
    assert file.table.find("first") is None
    second, third = file.table.find("second"), file.table.find("third")
    assert second is not None
    assert second.scopes == {Scope.SCORE}
    assert third is not None
    assert (third.key, third.namespace, third.weight) == ("b", "of-b", 3)


async def test_a_file_written_in_place_with_the_same_size_is_seen(path: Path) -> None:
    file = TokensFile(path)
    write_in_place(path, FIRST.replace("first", "other").encode())
    await file.look()
    assert file.table.find("other") is not None


@pytest.mark.parametrize("broken", ["", "[a", "[a]\n", '[a]\ntoken = ""', "\xff\xfe"])
async def test_a_broken_file_keeps_the_old_one_and_is_logged_once(
    path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = TokensFile(path)
    table = file.table
    write_in_place(path, broken.encode("latin-1"))
    with caplog.at_level(logging.ERROR):
        await file.look()
        await file.look()
    assert file.table is table
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    write(path, '[a]\ntoken = "mended"\n')
    await file.look()
    assert file.table.find("mended") is not None


async def test_a_file_that_is_gone_keeps_the_old_one_until_it_is_back(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = TokensFile(path)
    remove(path)
    with caplog.at_level(logging.ERROR):
        await file.look()
        await file.look()
    assert len(caplog.records) == 1
    assert file.table.find("first") is not None
    write(path, FIRST + '[b]\ntoken = "b"\n')
    await file.look()
    assert file.table.find("b") is not None


async def test_what_was_drawn_from_a_quota_stays_drawn_when_the_file_is_read_again(path: Path) -> None:
    file = TokensFile(path)
    before = file.table.find("first")
    assert before is not None
    assert before.quota is not None
    assert before.quota.take(10) == 0
    write(path, FIRST + '[b]\ntoken = "b"\n')
    await file.look()
    after = file.table.find("first")
    assert after is not None
    assert after.quota is not None
    assert after.quota.take(10) > 0


async def test_a_revoked_tenant_gets_no_fresh_quota_by_coming_back_under_another_rate(path: Path) -> None:
    file = TokensFile(path)
    caller = file.table.find("first")
    assert caller is not None
    assert caller.quota is not None
    caller.quota.take(10)
    write(path, '[a]\ntoken = "first"\nquota_tokens_per_minute = 12\n')
    await file.look()
    caller = file.table.find("first")
    assert caller is not None
    assert caller.quota is not None
    assert caller.quota.take(8) > 0


@pytest.mark.parametrize(
    ("token", "known"),
    [
        ("first", True),
        ("First", False),
        ("FIRST", False),
        (" first", False),
        ("first ", False),
        ("firs", False),
        ("firstt", False),
        ("", False),
        ("first\n", False),
    ],
)
def test_a_token_is_known_by_all_its_characters(path: Path, token: str, known: object) -> None:
    assert (TokensFile(path).table.find(token) is not None) == known


def test_a_file_that_is_not_there_or_too_large_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TokensFileError, match=r"nowhere\.toml: cannot be read"):
        TokensFile(tmp_path / "nowhere.toml")
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (5 << 20))
    with pytest.raises(TokensFileError, match="larger than"):
        TokensFile(large)
