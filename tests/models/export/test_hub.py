from pathlib import Path

import pytest

from gradewire_models.errors import ExportError
from gradewire_models.export.hub import find_source


def test_a_directory_is_itself_and_its_path_is_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-encoder").mkdir()
    source = find_source(str(tmp_path / "my-encoder"))
    assert (source.directory, source.origin, source.commit) == (tmp_path / "my-encoder", "my-encoder", "")
    monkeypatch.chdir(tmp_path / "my-encoder")
    assert find_source(".").origin == "my-encoder"


@pytest.mark.parametrize("wanted", ["./nowhere", "/nowhere", "a/b/c", "../x", "", "-x", "x y"])
def test_what_is_neither_directory_nor_id_is_refused_without_a_network(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")  # beside a checkout there may be anything
    with pytest.raises(ExportError, match="neither a directory nor the id"):
        find_source(wanted)


def test_a_directory_has_no_revisions(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="leave --revision out"):
        find_source(str(tmp_path), revision="main")
