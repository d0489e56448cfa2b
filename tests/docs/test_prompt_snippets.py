"""Prompt files that pages show: the server accepts each of them as it stands."""

import re
from pathlib import Path

import pytest

from gradewire_server.metrics.prompts.parsing import read_prompt

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```toml\n(format = .*?)^```", re.MULTILINE | re.DOTALL)
SNIPPETS = [
    (page.name, text)
    for page in (ROOT / "docs/reference/prompt-files.md", ROOT / "docs/guides/judge.md")
    for text in _FENCE.findall(page.read_text("utf-8"))
]


def test_pages_show_a_file_for_each_published_verifier() -> None:
    shown = {read_prompt(text.encode()).name for page, text in SNIPPETS if page == "judge.md"}
    assert {"compass", "xverify", "lave_printed", "visit_printed"} <= shown


@pytest.mark.parametrize(("page", "text"), SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_shown_file_is_accepted(page: str, text: str) -> None:
    file = read_prompt(text.encode())
    assert file.variants, page
