"""LaTeX tables: what stands in a cell is printed as it is, and documents with the tables compile."""

import re
import shutil
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.results.table_formats import escaped, to_latex
from gradewire_cli.results.tables import Table, Value

DOCUMENT = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{tables}\end{document}"
HOSTILE = [
    r"\input{/etc/passwd} \end{document}",
    "100 % & $x_1^2$ #1 {~}",
    "[3em] -- ''quoted'' `x`",
    "*",
    "a\nb\x00\x1b\ud800",
    "smile?a=<b>|c\\",
    "^^M ^^5c",
    '?` !` "a',
]
# What TeX reads as itself; everything else in an escaped text is a command of ours.
COMMANDS = re.compile(r"\\text(?:backslash|asciitilde|asciicircum|less|greater|bar|asciigrave)\{\}|\\[{}$&#_%]|\$-\$")


def table_of(names: list[str]) -> Table:
    return Table(
        names[0], ["metric", *names], [[name, *(Value("-0.5 [-.6, .1]", -0.5),) * len(names)] for name in names]
    )


@given(st.text(alphabet=st.sampled_from([*string.printable, "é", "\x00", "\ud800"]), max_size=40))
def test_no_character_of_a_text_is_a_command(text: str) -> None:
    line = escaped(text)
    rest = COMMANDS.sub("", line).replace("{}", "")
    assert not set(rest) & set("\\{}$&#_%~^<>|`\n\x00")
    assert "--" not in line
    assert "''" not in line


def test_signs_and_hyphens_are_told_apart() -> None:
    assert escaped("-0.709 [-.735, -.677]") == "$-$0.709 [$-$.735, $-$.677]"
    assert escaped("tau-b of gpt-4") == "tau-b of gpt-4"


def test_a_row_has_as_many_cells_as_the_table_has_columns() -> None:
    text = to_latex([table_of(HOSTILE)], ["100 %\n\\end{document}"])
    assert r"\begin{tabular}{lrrrrrrrr}" in text
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [len(HOSTILE)] * (len(HOSTILE) + 1)
    # [3em] and * behind the end of a line would be options of it.
    assert not any(line.startswith(("[", "*")) for line in body.splitlines())
    assert [line for line in text.splitlines() if r"\end{document}" in line] == [r"% 100 % \end{document}"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_a_document_with_many_tables_of_hostile_names_compiles(tmp_path: Path) -> None:
    (tmp_path / "tables.tex").write_text(
        to_latex([table_of(HOSTILE)] * 80, HOSTILE), encoding="utf-8", errors="replace"
    )
    (tmp_path / "page.tex").write_text(DOCUMENT)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").exists()
