"""The page in a real browser: 200 rows labelled by keyboard, hostile texts, two annotators, and no other requests."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.cli.conftest import write_rows
from tests.cli.label.test_label_file import table
from tests.cli.pages.pixels import png
from tests.support.models.tiny_models import make_package

from gradewire_cli.label.command import _rows
from gradewire_cli.label.label_file import LabelFile
from gradewire_cli.label.server import LabelServer
from gradewire_cli.label.session import Session
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.rows.row import Row
from gradewire_models.build.install import build_model
from gradewire_models.repository.built import load_built

NAME = "tiny-bert"
ROWS = 200
KEYS = {True: "1", False: "3"}


@contextmanager
def served(
    rows: list[Row], path: Path, *annotators: str, uncertain: int = 0, verdicts: Mapping[int, bool] | None = None
) -> Iterator[LabelServer]:
    session = Session(rows, uncertain, LabelFile.open(path, annotators), path.parent, verdicts or {})
    with LabelServer(session, annotators, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose messages, and requests to anything but its server, fail the test at its end."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: said.append(request.url))
    yield page
    own = "/".join([*page.url.split("/")[:3], ""])
    page.close()
    assert [text for text in said if not text.startswith((own, "data:"))] == []


def labelled(page: Page, count: int) -> None:
    """Waits until so many rows are labelled, and the next one is there."""
    expect(page.locator(f"body[data-labelled='{count}']:not([aria-busy])")).to_be_attached()


def answers() -> list[dict[str, Any]]:
    """Right answers say the reference, wrong ones half of it or none; the tiny encoder finds all texts alike."""
    found = []
    for number in range(ROWS):
        words = [f"w{number % 50}", f"w{(number * 7 + 3) % 50}"]
        said = [words, [f"w{(number + 11) % 50}", words[1]], [f"w{(number + 13) % 50}", f"w{(number + 17) % 50}"]]
        found.append(
            {
                "id": f"r{number}",
                "question": f"question {number // 2}",
                "references": [" ".join(words)],
                "prediction": " ".join(said[number % 3]),
            }
        )
    return found


def run(*arguments: str | Path) -> str:
    """Runs the command in a process of its own, for the browser's event loop runs in this one."""
    program = [sys.executable, "-c", "from gradewire_cli import main; main()"]
    done = subprocess.run([*program, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_200_rows_labelled_on_the_page_make_a_better_fit(page: Page, tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", "bert")
    build_model(package.model, tmp_path / "models", wheels=package.wheels)
    engine = ("--model", NAME, "--model-repository", tmp_path / "models", "--disk-directory", tmp_path / "cache")
    file, scores = write_rows(tmp_path / "answers.jsonl", answers()), tmp_path / "scores.jsonl"
    run("score", file, "--metrics", "smile", "--out", scores, *engine, "--quiet")
    source = InputFile((str(file),), RowOptions(needed=("references", "prediction", "id")))
    rows, _, verdicts = _rows(source, [scores], "uncertain", 0)
    assert verdicts.keys() == {row.index for row in rows}
    nearest = [json.loads(line)["scores"]["smile"]["score"] for line in scores.read_text().splitlines()]
    distances = [abs(nearest[row.index] - 2 / 3) for row in rows]
    assert distances == sorted(distances)
    labels = tmp_path / "answers.labels.csv"
    with served(rows, labels, "ann") as server:
        page.goto(server.urls["ann"])
        for done, row in enumerate(rows):
            labelled(page, done)
            assert page.locator("#prediction").text_content() == (row.item or {})["prediction"]
            page.keyboard.press(KEYS[page.locator("#prediction").text_content() in (row.item or {})["references"]])
        labelled(page, ROWS)
        expect(page.locator("#progress")).to_have_text(f"All {ROWS} rows are labelled.")
    assert len(table(labels)) == ROWS + 1
    assert load_built(tmp_path / "models", NAME).calibrations == ()
    fitted = run("calibrate", file, "--scores", scores, "--add", labels, "--metric", "smile", *engine[:4], "--quiet")
    assert f"Gain from {ROWS} added labels" in fitted
    curve = {line.split()[0]: line.split() for line in fitted.splitlines() if line.split()[:1]}
    assert curve["50"][1] == curve["100"][1] == curve["200"][1] == "20"
    (stored,) = load_built(tmp_path / "models", NAME).calibrations
    assert stored.rows == ROWS
    assert dict(stored.figures)["accuracy_after"] > dict(stored.figures)["accuracy_before"]


def row(number: int, text: str = "a cat", **attributes: Any) -> Row:
    item = {"question": f"question {number}?", "references": ["cat", "kitten"], "prediction": text}
    return Row(number, f"line {number + 1}", f"r{number}", item, "", f"{number:032x}", has_id=True, **attributes)


def test_keys_and_buttons_label_go_back_skip_and_remove(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    with served([row(number) for number in range(4)], path, "ann", uncertain=2) as server:
        page.goto(server.urls["ann"])
        labelled(page, 0)
        expect(page.locator("#progress")).to_have_text("0 of 4 rows are labelled (0 of the 2 uncertain ones).")
        page.keyboard.press("s")
        expect(page.locator("#row-id")).to_have_text("Row 2 of 4, id r1")
        page.keyboard.press("u")
        labelled(page, 1)
        page.get_by_role("button", name="Wrong").click()
        labelled(page, 2)
        page.keyboard.press("b")
        expect(page.locator("#row-id")).to_have_text("Row 3 of 4, id r2")
        expect(page.get_by_role("button", name="Wrong")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("0")
        labelled(page, 1)
        page.keyboard.press("Control+1")  # the browser's own
        page.keyboard.press("r")
        labelled(page, 2)
        assert table(path) == [["id", "ann"], ["r1", "0.25"], ["r2", "1"]]
        page.reload()
        expect(page.locator("#row-id")).to_have_text("Row 1 of 4, id r0")  # it was skipped


def test_flags_are_proposed_changed_by_keys_and_stored_with_the_label(page: Page, tmp_path: Path) -> None:
    path, rows = tmp_path / "labels.csv", [row(number) for number in range(5)]
    for number in (0, 1, 3):
        assert rows[number].item is not None
        rows[number].item["question"] = "Who won last year?"  # type: ignore[index]
    with served(rows, path, "ann") as server:
        page.goto(server.urls["ann"])
        labelled(page, 0)
        time, gold = (page.get_by_role("button", name=name) for name in ("Time-dependent", "Bad references"))
        expect(time).to_have_attribute("aria-pressed", "true")
        expect(gold).to_have_attribute("aria-pressed", "false")
        expect(page.locator("#reasons")).to_contain_text("time-dependent is proposed, because the question has")
        page.keyboard.press("1")
        labelled(page, 1)
        page.keyboard.press("t")
        expect(time).to_have_attribute("aria-pressed", "false")
        expect(page.locator("#reasons")).to_be_hidden()
        page.keyboard.press("3")
        labelled(page, 2)
        gold.click()
        expect(gold).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("s")
        expect(page.locator("#row-id")).to_have_text("Row 4 of 5, id r3")
        expect(page.locator("#progress")).to_have_text("2 of 5 rows are labelled, and 1 flagged.")
        page.keyboard.press("s")  # the proposed flag is stored
        expect(page.locator("#row-id")).to_have_text("Row 5 of 5, id r4")
        page.keyboard.press("1")
        labelled(page, 3)
        assert table(path) == [
            ["id", "ann", "flags:ann"],
            ["r0", "1", "time-dependent"],
            ["r1", "0", "none"],
            ["r4", "1", ""],
            ["r2", "", "bad-gold"],
            ["r3", "", "time-dependent"],
        ]
        page.reload()
        expect(page.locator("#progress")).to_have_text("3 of 5 rows are labelled, and 2 flagged.")


def test_the_class_of_a_metrics_error_is_asked_for_after_the_label(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    verdicts = {0: False, 1: True, 2: True, 3: False}
    with served([row(number) for number in range(4)], path, "ann", verdicts=verdicts) as server:
        page.goto(server.urls["ann"])
        labelled(page, 0)
        asked = page.locator("#error-classes")
        expect(asked).to_be_hidden()
        page.keyboard.press("1")
        labelled(page, 1)
        expect(page.locator("#row-id")).to_have_text("Row 1 of 4, id r0")
        expect(asked).to_contain_text("The metric called this answer wrong.")
        page.keyboard.press("2")  # the second class
        expect(page.locator("#row-id")).to_have_text("Row 2 of 4, id r1")
        expect(asked).to_be_hidden()
        page.keyboard.press("1")  # as the metric says
        labelled(page, 2)
        expect(page.locator("#row-id")).to_have_text("Row 3 of 4, id r2")
        page.keyboard.press("3")
        labelled(page, 3)
        expect(asked).to_contain_text("The metric called this answer right.")
        page.get_by_role("button", name="misleading emphasis").click()
        expect(page.locator("#row-id")).to_have_text("Row 4 of 4, id r3")
        page.keyboard.press("1")
        labelled(page, 4)
        page.keyboard.press("w")  # letters change the label, and no error is left
        expect(asked).to_be_hidden()
        assert table(path) == [
            ["id", "ann", "error_class:ann"],
            ["r0", "1", "synonym"],
            ["r1", "1", ""],
            ["r2", "0", "misleading emphasis"],
            ["r3", "0", ""],
        ]
        page.keyboard.press("b")
        expect(page.get_by_role("button", name="misleading emphasis")).to_have_attribute("aria-pressed", "true")


def test_two_annotators_see_their_agreement_and_not_each_others_labels(
    browser: Browser, page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "labels.csv"
    with served([row(number) for number in range(6)], path, "ann", "ben") as server:
        page.goto(server.urls["ann"])
        for place, key in enumerate("113311"):
            labelled(page, place)
            page.keyboard.press(key)
        labelled(page, 6)
        expect(page.locator("#agreement")).to_have_text("No row has labels by two annotators yet.")
        other = browser.new_page()
        other.goto(server.urls["ben"])
        expect(other.locator("[aria-pressed='true']")).to_have_count(0)
        for place, key in enumerate("113331"):
            labelled(other, place)
            other.keyboard.press(key)
        labelled(other, 6)
        expect(other.locator("#agreement")).to_contain_text("Krippendorff's \u03b1 0.69")
        expect(other.locator("#agreement")).to_contain_text("Cohen's κ of ann and ben 0.67")
        other.close()
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.locator("#agreement")).to_contain_text("Cohen's κ of ann and ben 0.67")


def test_hostile_texts_are_shown_as_they_are(page: Page, tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png())
    text = "</script><img src=http://192.0.2.1/x onerror=alert(1)>\u202e {{ 7*7 }} &amp; \u0000"
    pictures = ("1.png", "https://192.0.2.1/2.png", '"><img src=https://192.0.2.1/3.png>.png')
    hostile = row(0, text, pictures=pictures)
    assert hostile.item is not None
    hostile.item["question"] = hostile.item["caption"] = text  # type: ignore[index]
    hostile.item["references"][0] = text
    with served([hostile], tmp_path / "labels.csv", "ann") as server:
        page.goto(server.urls["ann"])
        labelled(page, 0)
        for place in ("#question", "#caption", "#prediction", "#references li >> nth=0"):
            assert page.locator(place).text_content() == text
        drawn = page.locator("#pictures img")
        assert drawn.count() == 1
        assert drawn.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        assert page.locator("#pictures figure").count() == 3
        assert page.locator("a[href^=http]").count() == 0


def test_a_stopped_server_and_a_failed_write_are_reported_and_nothing_goes_on(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    folder = tmp_path / "folder"
    folder.mkdir()
    with served([row(0), row(1)], folder / "labels.csv", "ann") as server:
        page.goto(server.urls["ann"])
        labelled(page, 0)
        folder.rmdir()
        page.keyboard.press("1")
        expect(page.locator("#error")).to_contain_text("the label was not stored")
        expect(page.locator("#row-id")).to_have_text("Row 1 of 2, id r0")
        folder.mkdir()
        page.keyboard.press("1")
        labelled(page, 1)
        expect(page.locator("#error")).to_be_hidden()
    page.keyboard.press("1")
    expect(page.locator("#error")).to_contain_text("gradewire label does not answer")
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen_and_every_control_has_a_name(page: Page, tmp_path: Path, width: int) -> None:
    with served([row(0, "x" * 3000)], tmp_path / "labels.csv", "ann", verdicts={0: False}) as server:
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(server.urls["ann"])
        labelled(page, 0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        names = ("Right", "Unclear", "Wrong", "Back", "Skip", "Remove the label", "Time-dependent", "Bad references")
        assert all(page.get_by_role("button", name=name).count() == 1 for name in names)
        assert page.get_by_role("complementary", name="Guidelines").is_visible()
        page.keyboard.press("1")
        labelled(page, 1)
        assert page.locator("#error-classes button").count() == 8
        assert page.evaluate("document.documentElement.scrollWidth") <= width
