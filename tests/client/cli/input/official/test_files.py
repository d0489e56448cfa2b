"""Which files are read where a folder is named."""

from pathlib import Path

import pytest

from gradewire.cli.input.official.files import NoSuchFilterError, OfficialFiles
from gradewire.cli.input.official.options import official_files
from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError


def of(**options: object) -> OfficialFiles:
    whole = {"name": "mine", "records": lambda _: iter([Record(0, "line 1", {})]), "type_columns": (), **options}
    return OfficialFiles(**whole)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "later").mkdir()
    for name in ("samples_b.jsonl", "samples_a.jsonl", "results.json", "later/samples_c.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "samples_d.jsonl").mkdir()
    return tmp_path


def test_a_folder_stands_for_the_files_with_samples_below_it(run: Path) -> None:
    found = of(patterns=("samples_*.jsonl", "*_a.jsonl")).found([str(run), "-", "else.jsonl"])
    names = [str(run / name) for name in ("later/samples_c.jsonl", "samples_a.jsonl", "samples_b.jsonl")]
    assert found == (*names, "-", "else.jsonl")


@pytest.mark.parametrize(
    ("options", "names", "message"),
    [
        ({"patterns": ("*.eval",)}, ("",), r"no \*\.eval is in this folder"),
        ({"patterns": ("samples_*.jsonl",)}, ("", "samples_a.jsonl"), r"samples_a\.jsonl is named twice"),
        ({}, ("",), "is a folder: name its files for --from mine themselves"),
        ({"several": False}, ("samples_a.jsonl", "samples_b.jsonl"), "reads one file of results"),
    ],
)
def test_what_cannot_be_read_together_is_refused(
    run: Path, options: dict[str, object], names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        of(**options).found([str(run / name) for name in names])


def test_one_file_by_two_names_is_refused(run: Path) -> None:
    again = f"{run}/later/../samples_a.jsonl"
    with pytest.raises(InputError, match=r"\.\./samples_a\.jsonl is named twice \(as .*samples_a\.jsonl too\): leave"):
        of().found([str(run / "samples_a.jsonl"), again])


def test_of_several_files_those_without_the_filter_are_left_out_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    logs = Path(__file__).parents[4] / "support/harness_logs/lm_eval"
    files = official_files({"official": "lm-eval", "sample_filter": "strict"})
    assert files is not None
    (found,) = files.found([str(logs)])
    assert "gw_sums" in found
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len(list(logs.iterdir())) - 1
    assert told[0].endswith("no sample is of the filter strict; --filter can be none: left out")
    unknown = official_files({"official": "lm-eval", "sample_filter": "loose"})
    assert unknown is not None
    with pytest.raises(NoSuchFilterError, match="no sample is of the filter loose"):
        unknown.found([str(logs)])


def test_the_options_are_written_as_they_were_given() -> None:
    files = of(beside={"--questions": "q.json", "--annotations": ""}, options={"--filter": "x"})
    assert files.arguments == ("--from", "mine", "--questions", "q.json", "--filter", "x")
