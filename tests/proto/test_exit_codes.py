"""Exit codes: each has one meaning, and the page and the help tell the same."""

import re
import subprocess
import sys
from pathlib import Path

from gradewire_cli.problems import InputError, UnreachableError, exit_codes
from gradewire_proto.exit_codes import MEANINGS, ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command.md"


def test_each_code_has_one_meaning_and_the_page_tells_all() -> None:
    assert list(MEANINGS) == list(ExitCode)
    assert len(set(MEANINGS.values())) == len(MEANINGS)
    table = PAGE.read_text("utf-8").partition("### Exit codes")[2].partition("\n## ")[0]
    told = {int(code): said for code, said in re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)}
    assert list(told) == list(ExitCode)
    assert all(told[code].startswith(MEANINGS[code]) for code in ExitCode)


def test_the_help_tells_those_that_a_command_has() -> None:
    helped = exit_codes(failed_rows="some rows")
    assert "  1    some rows\n" in helped
    assert "  141  standard output" in helped
    assert f"  {ExitCode.GATE} " not in helped
    assert f"  {ExitCode.GATE}    it is worse\n" in exit_codes(condition="it is worse")
    assert (InputError.exit_code, UnreachableError.exit_code) == (ExitCode.UNUSABLE, ExitCode.UNREACHABLE)


def test_a_reader_that_has_seen_enough_is_told_from_rows_that_failed() -> None:
    program = "from gradewire_cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "score", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (ExitCode.CLOSED, b"")
