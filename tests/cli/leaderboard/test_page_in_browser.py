"""The page of a leaderboard in a real browser: it asks no network, breaks no policy, and sorts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.cli.leaderboard.test_page import board, page_of


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "board.html"
    path.write_bytes(page_of(board()))
    opened = browser.new_page()
    told: list[str] = []
    opened.on("console", lambda message: told.append(message.text))
    opened.on("pageerror", lambda error: told.append(str(error)))
    opened.on("request", lambda request: told.append(request.url))
    opened.goto(path.as_uri())
    yield opened
    assert told == [path.as_uri()], "nothing is asked for but the page, and nothing goes wrong"
    opened.close()


def test_it_sorts_and_draws(page: Page) -> None:
    models = page.locator("#t-ratings tbody tr th:nth-child(2)")
    lines = board().ratings.models
    assert models.all_inner_texts() == [line.model for line in lines]
    page.locator("#t-ratings thead button", has_text="Elo").click()
    page.locator("#t-ratings thead button", has_text="Elo").click()
    assert models.all_inner_texts() == [line.model for line in sorted(lines, key=lambda line: line.elo.value)]
    assert page.locator("svg circle.dot").count() == 3
    page.locator("#theme").click()
    shade = page.locator(".matrix td.w8, .matrix td.w7").first.evaluate(
        "cell => getComputedStyle(cell).backgroundColor"
    )
    assert shade not in {"rgba(0, 0, 0, 0)", "transparent"}
