"""What a person does on the page, by keyboard alone: for tests in a real browser."""

import json
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.gateway.page_keyboard import press_on, tab_to, type_into


def go_to(page: Page, view: str) -> None:
    """Chooses a view, unless it is there."""
    shown = page.locator(f"#view-{view}")
    if not shown.is_visible():
        press_on(page, page.get_by_role("link", name=view.capitalize(), exact=True))
    shown.wait_for()


def sign_in(page: Page, token: str) -> None:
    """Types a token and waits for what comes of it."""
    type_into(page, page.locator("#token"), token)
    page.keyboard.press("Enter")
    page.locator("#work, #sign-in-error:not(:empty)").first.wait_for()


def score(page: Page, answer: str, references: tuple[str, ...] = ("a small cat",)) -> None:
    """Types one answer and scores it."""
    boxes = page.locator("#references textarea")
    while boxes.count() < len(references):
        press_on(page, page.get_by_role("button", name="Add reference"))
    for place, text in enumerate(references):
        type_into(page, boxes.nth(place), text)
    type_into(page, page.locator("#answers textarea").first, answer)
    with page.expect_response("**/Score"):
        page.keyboard.press("Control+Enter")
    expect(page.locator("#score-button")).to_have_text("Score")


def file_of(tmp_path: Path, rows: int, name: str = "rows.jsonl", label: str = "human_score") -> Path:
    """Writes a file of labelled rows, with a line that is no JSON as its fourth."""
    answers = [("A small cat sleeps there.", 1), ("a dog", 0), ("", 0), ("The cats 🐈 slept", 1), ("no idea", 0)]
    lines = [
        json.dumps(
            {
                "id": f"r{at}",
                "question": "What sleeps?",
                "reference": ["cat"],
                "response": answers[at % 5][0],
                label: answers[at % 5][1],
                "model": f"m{at % 2}",
            }
        )
        for at in range(rows)
    ]
    path = tmp_path / name
    path.write_text("\n".join([*lines[:3], "no JSON", *lines[3:]]) + "\n", encoding="utf-8")
    return path


def choose_file(page: Page, path: Path) -> None:
    """By keyboard; the dialog of the system is the browser's business."""
    tab_to(page, page.locator("#file"))
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(path)
    page.locator("#mapping select").first.wait_for()
