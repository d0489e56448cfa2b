"""The check of words finds what readers stumble over, in every kind of text, and nothing in plain ones."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "plain_words.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = loaded()

MODULE = '''"""Whether it holds."""

LIMIT_S = 5
"""Seconds to wait."""


@group.command("run", epilog="As it was")
@click.option("--out", help=f"of {LIMIT_S} " "files")
def run(out):
    """What is run.

    Nobody is told.
    """
    # How it
    # ends matters.
    raise ValueError(f"{out}: there is none, reckon {LIMIT_S} anew")  # its name
'''


def findings(texts: object) -> list[str]:
    return [f"{text.line}: {finding.partition(':')[0]}" for text in texts for finding in words.findings_of(text)]  # type: ignore[attr-defined]


HELP = (
    """
[run]
examples = """
    + 3 * "'"
    + """
  gradewire run whether it told
"""
    + 3 * "'"
    + """
text = "What is run."

[out]
help = "Write what nobody was told, which is read by annotators who do not write."
"""
)


def test_help_in_a_toml_file_is_checked_without_its_examples() -> None:
    assert findings(words.texts_of_help(HELP)) == [
        "6: a help begins with 'What'",
        "9: 'told' in a help",
        "9: a relative clause in another one",
    ]


@pytest.mark.parametrize("decorator", ["command", "command('run')", "click.command", "group.command('run')"])
def test_the_docstring_of_a_command_is_its_help(decorator: str) -> None:
    module = f'@{decorator}\ndef run():\n    """Run it{" again" * 30}."""\n'
    assert findings(words.texts_of_python(module)) == ["3: a sentence of 32 words, at most 30"]


def test_a_phrase_over_two_lines_is_found() -> None:
    module = '"""Fail if a page is asked\nfor."""\n'
    assert findings(words.texts_of_python(module)) == ["1: 'asked for' in a docstring"]


def test_every_text_of_a_module_is_read_once_with_its_line() -> None:
    assert sorted(findings(words.texts_of_python(MODULE))) == [
        "10: 'told' in a help",
        "10: a help begins with 'What'",
        "14: a comment begins with 'How'",
        "16: 'anew' in a message",
        "16: 'reckon' in a message",
        "16: 'there is none' in a message",
        "16: a comment begins with 'its'",
        "1: a docstring begins with 'Whether'",
        "7: a help begins with 'As'",
        "8: a help begins with 'of'",
    ]


def test_comments_of_a_proto_are_read_as_blocks() -> None:
    proto = (
        "// Of each item.\n// Texts.\nmessage A {\n  string b = 1;  // Where it is.\n  // A name,\n  // as it is.\n}\n"
    )
    assert findings(words.texts_of_proto(proto)) == [
        "1: a comment begins with 'Of'",
        "4: a comment begins with 'Where'",
    ]


def test_sentences_of_a_page_are_short_and_not_nested() -> None:
    long = " ".join(["word"] * 31)
    page = (
        f"# What it is\n\n{long}.\n\n```\n{long} told\n```\n\n| {long} |\n\n- One, which ends.\n"
        f"- Two that somebody, who knows what\n  the third, whose end is far, does. {long[:149]}.\n"
    )
    assert findings(words.texts_of_page(page)) == [
        "3: a sentence of 31 words, at most 30",
        "12: a relative clause in another one",
    ]


def test_a_sentence_may_end_in_bold_type_and_hold_a_mark_of_a_list() -> None:
    bold = f"{'word ' * 15}and\n**bold** words here.** {'word ' * 20}end."
    (text,) = words.texts_of_page(bold)
    assert text.text.count("**") == 3
    assert list(words.findings_of(text)) == []


@pytest.mark.parametrize(
    "text", ["Whatever it was, it ended.", "The account of a foretold end.", "A figure.", "Ask for it."]
)
def test_words_that_only_begin_alike_are_left_alone(text: str) -> None:
    assert not findings([words.Text(1, "docstring", text)])


def test_the_program_names_file_and_line_and_fails(tmp_path: Path) -> None:
    script = tmp_path / ".ci" / "plain_words.py"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    for name, text in (
        ("server/a.py", "x = 1  # How it is\n"),
        ("docs/start.md", "You are told.\n"),
        ("b.py", "# It\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    git = str(shutil.which("git"))
    subprocess.run([git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([git, "add", "."], cwd=tmp_path, check=True)

    def checked(*paths: str) -> tuple[int, list[str]]:
        done = subprocess.run([sys.executable, script, *paths], check=False, capture_output=True, text=True)
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    in_code = "server/a.py:1: a comment begins with 'How': begin with a verb or a noun"
    in_guide = "docs/start.md:1: 'told' in a page: say reported, notified, or name who says it"
    assert checked() == (1, [in_guide, in_code])
    assert checked("server") == (1, [in_code])
    assert checked(".ci") == (0, [])
