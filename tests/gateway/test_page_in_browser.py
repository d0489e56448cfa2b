"""The page in a real browser, in front of a real server that asks for tokens.

Twelve tasks are done by keyboard alone, each a test of its own: every focus is moved and every text typed by
`page.keyboard`. Only what lies outside the page is done by script: the system's dialog that chooses a file.

1.  sign in, after a token that the server does not know;
2.  skip to the content;
3.  score an answer with Ctrl + Enter, and see the window marked;
4.  add references and answers, and take one away;
5.  choose another metric and a preset;
6.  mark the window of another metric;
7.  copy the line that reproduces a score;
8.  unfold the command of curl;
9.  switch to dark colours and back;
10. choose a file, score it and read the report of agreement;
11. cancel a run and keep what was scored;
12. watch the load, pause and go on; and sign out.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.gateway.page_actions import choose_file, file_of, go_to, score, sign_in
from tests.gateway.page_keyboard import contrast, press_on, tab_to, type_into, weak_texts
from tests.support.servers.server_process import ServerProcess

TOKENS = (
    '[own]\ntoken = "right"\nscopes = ["score", "prepare", "judge", "admin"]\n'
    '[scorer]\ntoken = "scorer"\nscopes = ["score"]\n[narrow]\ntoken = "narrow"\nscopes = ["prepare"]\n'
)
ANSWER = "🐈🐈 A small cat sleeps there."
HOSTILE = "<img src=x onerror=alert(1)><script>hacked=1</script> \u202ecat\u202c " + "w" * 3000 + " 👩‍👩‍👧"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("page")
    (directory / "tokens.toml").write_text(TOKENS)
    settings = {
        "model_repository": minilm,
        "judge_backend": "none",
        "wordnet_directory": directory / "nowhere",
        "http_api_port": 0,
        "auth_tokens_file": directory / "tokens.toml",
    }
    with ServerProcess(directory, **settings) as process:
        yield process


@pytest.fixture(scope="module")
def context(browser: Browser, server: ServerProcess) -> Iterator[BrowserContext]:
    """Whatever a page of it says on the console, or asks of another host, fails the test at the end."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.api)
    context.set_default_timeout(20_000)
    said: list[str] = []
    asked: list[str] = []
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("dialog", lambda dialog: said.append(dialog.message))
    context.on("request", lambda request: asked.append(request.url))
    yield context
    assert not said
    assert len(asked) > 50
    assert {url for url in asked if not url.startswith((f"{server.api}/", f"blob:{server.api}/"))} == set()


@pytest.fixture(scope="module")
def open_page(context: BrowserContext, server: ServerProcess) -> Page:
    """Signed in, and kept from test to test: what one has scored is there for the next."""
    page = context.new_page()
    page.on("filechooser", lambda _chooser: None)  # else each test would ask the browser anew to let it answer these
    page.goto(f"{server.api}/")
    return page


@pytest.fixture(scope="module")
def signed_in(open_page: Page) -> Page:
    if open_page.locator("#sign-in").is_visible():
        sign_in(open_page, "right")
    return open_page


@pytest.fixture
def page(signed_in: Page) -> Page:
    """At its top, with nothing in focus."""
    signed_in.evaluate("document.activeElement.blur(); getSelection().collapse(document.body, 0); scrollTo(0, 0)")
    return signed_in


@pytest.fixture
def score_view(page: Page) -> Page:
    go_to(page, "score")
    return page


@pytest.fixture
def file_view(page: Page) -> Page:
    go_to(page, "file")
    return page


def test_task_1_sign_in_after_a_token_that_is_not_known(open_page: Page) -> None:
    assert open_page.locator("#work").is_hidden()
    expect(open_page.locator("#token")).to_be_focused()
    open_page.keyboard.insert_text("wrong")
    open_page.keyboard.press("Enter")
    expect(open_page.locator("#sign-in-error")).to_contain_text("(401)")
    assert weak_texts(open_page) == []
    open_page.emulate_media(color_scheme="dark")
    assert weak_texts(open_page) == []
    open_page.emulate_media(color_scheme="light")
    sign_in(open_page, "ключ")  # no header can carry it
    expect(open_page.locator("#sign-in-error")).to_contain_text("(401)")
    expect(open_page.locator("#trouble")).to_be_hidden()
    type_into(open_page, open_page.locator("#token"), "right")
    open_page.keyboard.press("Enter")
    open_page.keyboard.press("Enter")  # of a person in a hurry: it opens one page all the same
    expect(open_page.locator("#work")).to_be_visible()
    open_page.wait_for_load_state("networkidle")
    assert open_page.locator("#references textarea").count() == 1
    assert open_page.evaluate(
        "[...Object.values(sessionStorage), ...Object.values(localStorage), document.cookie]"
    ) == [""]


def test_task_2_skip_to_the_content(page: Page) -> None:
    press_on(page, page.get_by_role("link", name="Skip to the content"))
    expect(page.locator("main")).to_be_focused()


def test_task_3_score_an_answer_and_see_its_window(score_view: Page) -> None:
    page = score_view
    type_into(page, page.locator("#question"), "What sleeps on the sill?")
    type_into(page, page.get_by_role("textbox", name="Reference 1"), "cat")
    type_into(page, page.get_by_role("textbox", name="Answer 1"), ANSWER)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#results")).to_be_focused()
    card = page.get_by_role("article", name="Answer 1")
    assert card.locator("mark").inner_text() == "cat", "behind emoji, which take two code units each"
    assert card.locator(".answer").inner_text() == ANSWER
    assert card.locator(".references .matched small").inner_text() == "matched by correctness, smile"
    assert set(card.get_by_role("region", name="smile", exact=True).locator("dt").all_inner_texts()) >= {
        "sentence",
        "keyword",
        "exact",
    }
    assert (
        page.locator("#results-time").inner_text().count(" ms")
        + page.locator("#results-time").inner_text().count(" s ")
        == 2
    )


def test_task_4_add_references_and_answers_and_take_one_away(score_view: Page) -> None:
    page = score_view
    press_on(page, page.get_by_role("button", name="Add reference"))
    page.keyboard.insert_text("kitten")
    press_on(page, page.get_by_role("button", name="Add answer"))
    expect(page.get_by_role("textbox", name="Answer 2")).to_be_focused()
    page.keyboard.insert_text("a dog")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#results-list article")).to_have_count(2)
    press_on(page, page.get_by_role("button", name="Remove reference 2"))
    expect(page.get_by_role("textbox", name="Reference 1")).to_be_focused()
    press_on(page, page.get_by_role("button", name="Remove answer 2"))
    assert (page.locator("#references textarea").count(), page.locator("#answers textarea").count()) == (1, 1)


def test_task_5_choose_another_metric_and_a_preset(score_view: Page) -> None:
    page = score_view
    press_on(page, page.locator("#metrics summary", has_text="Settings of smile"))
    tab_to(page, page.locator("#metric-smile-preset"))
    page.keyboard.type("fast")
    press_on(page, page.locator("#metric-exact_match"), "Space")
    score(page, "A cat.", ("cat",))
    names = page.locator("#results-list .metric h4").all_inner_texts()
    assert names == ["correctness", "smile:fast", "exact_match"]
    assert (
        page.locator("#results-list .line code").nth(1).inner_text().startswith("smile:fast/1?model=all-MiniLM-L6-v2@")
    )
    press_on(page, page.locator("#metric-exact_match"), "Space")
    tab_to(page, page.locator("#metric-smile-preset"))
    page.keyboard.press("Home")
    assert page.locator("#metric-smile-preset").input_value() == ""


def test_task_6_mark_the_window_of_another_metric(score_view: Page) -> None:
    page = score_view
    score(page, ANSWER)
    press_on(
        page, page.get_by_role("region", name="correctness", exact=True).get_by_role("button", name="Mark the window")
    )
    expect(page.locator("#results-list article .note").first).to_have_text("Marked: the window of correctness.")
    assert page.locator("[aria-pressed=true]").count() == 1


def test_task_7_copy_the_line_of_a_score(score_view: Page) -> None:
    page = score_view
    score(page, ANSWER)
    press_on(page, page.get_by_role("button", name="Copy the identifier of smile"))
    expect(page.locator("#announcer")).to_have_text("the identifier of smile copied")
    assert (
        page.evaluate("navigator.clipboard.readText()") == page.locator("#results-list .line code").nth(1).inner_text()
    )


def test_task_8_unfold_the_command_of_curl(score_view: Page, server: ServerProcess) -> None:
    page = score_view
    score(page, "It's a cat")
    press_on(page, page.locator("#snippets summary", has_text="curl"))
    shown = page.get_by_role("region", name="curl snippet").inner_text()
    assert shown.startswith(f"curl -s '{server.api}/gradewire.v1.Scoring/Score'")
    assert "$GRADEWIRE_TOKEN" in shown
    assert "It'\\''s a cat" in shown
    assert "right" not in shown, "the token stands nowhere"


def test_task_9_switch_to_dark_colours_and_back(page: Page) -> None:
    press_on(page, page.get_by_role("button", name="Dark colours"))
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    press_on(page, page.get_by_role("button", name="Light colours"), "Space")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_task_10_score_a_file_and_read_its_report(file_view: Page, tmp_path: Path) -> None:
    page = file_view
    choose_file(page, file_of(tmp_path, 40))
    chosen = page.locator("#mapping select").evaluate_all("all => all.map(one => one.value)")
    assert chosen == ["question", "reference", "response", "id", "", "model", "human_score"]
    press_on(page, page.get_by_role("button", name="Score the file"))
    expect(page.locator("#file-results")).to_be_focused(timeout=20_000)
    rows = page.locator("#file-rows tbody tr")
    assert rows.count() == 41
    assert "INVALID_INPUT line 4 is not JSON" in rows.nth(3).inner_text()
    assert "EMPTY_PREDICTION" in rows.nth(2).inner_text()
    assert "right" in rows.nth(4).inner_text() or "wrong" in rows.nth(4).inner_text()
    assert "41 rows, 9 of them" in page.locator("#file-summary").inner_text()
    frame = page.frame_locator("iframe.report")
    expect(frame.get_by_role("heading", level=1)).to_have_text("Agreement with human labels", timeout=20_000)
    assert frame.locator(".sortable thead button").count() > 5, "its own script runs"
    with page.expect_download() as download:
        press_on(page, page.get_by_role("button", name="Save as JSONL"))
    saved = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert [row["index"] for row in saved] == list(range(41))
    assert saved[0]["scores"]["smile"]["line"].startswith("smile:v1/1?")
    assert saved[3]["scores"]["smile"] == {
        "score": None,
        "status": "INVALID_INPUT",
        "message": saved[3]["scores"]["smile"]["message"],
    }
    assert weak_texts(page) == []


def test_task_11_cancel_a_run_and_keep_what_was_scored(file_view: Page, tmp_path: Path) -> None:
    page = file_view
    choose_file(page, file_of(tmp_path, 4000, "many.jsonl", label="unknown"))
    tab_to(page, page.get_by_role("button", name="Score the file"))
    page.keyboard.press("Enter")
    expect(page.locator("#file-cancel")).to_be_focused()
    expect(page.locator("#file-count")).to_contain_text("rows scored")
    page.keyboard.press("Enter")
    expect(page.locator("#file-error")).to_contain_text("Cancelled after")
    assert "no report" in page.locator("#file-report").inner_text(), "no row has a label"
    assert 0 < int(page.locator("#file-summary p").first.inner_text().split(" rows")[0].replace(",", "")) < 4001


def test_task_12_watch_the_load_and_sign_out(page: Page, server: ServerProcess) -> None:
    press_on(page, page.get_by_role("link", name="Live"))
    state = page.get_by_role("row", name="State")
    expect(state).to_contain_text("serving")
    expect(page.get_by_role("img", name="Load")).to_be_visible()
    assert weak_texts(page) == []
    press_on(page, page.get_by_role("button", name="Pause"))
    expect(page.locator("#live-state")).to_have_text("Paused.")
    with page.expect_response("**/Snapshot") as told:
        page.keyboard.press("Enter")
    assert int(told.value.json()["calls"]) > 5
    page.evaluate("document.activeElement.blur()")
    other = page.context.new_page()
    other.goto(f"{server.api}/")
    sign_in(other, "right")
    press_on(other, other.get_by_role("button", name="Sign out"))
    expect(other.locator("#token")).to_be_focused()
    assert other.locator("#work").is_hidden()
    other.close()


def test_a_file_may_be_dropped(file_view: Page) -> None:
    page = file_view
    page.locator("#drop").evaluate("""place => {
      const given = new DataTransfer();
      given.items.add(new File(["answer,response\\ncat,a cat\\n"], "\\u202e<b>dropped.csv"));
      place.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }));
    }""")
    expect(page.locator("#mapping legend")).to_contain_text("[U+202E]<b>dropped.csv")
    press_on(page, page.get_by_role("button", name="Score the file"))
    expect(page.locator("#file-results")).to_be_focused()
    assert page.locator("#file-rows td.text").all_inner_texts() == ["a cat"]


def test_a_token_that_is_good_for_less_is_told_so(context: BrowserContext, server: ServerProcess) -> None:
    page = context.new_page()
    page.goto(f"{server.api}/#live")
    sign_in(page, "scorer")
    expect(page.locator("#live-error")).to_contain_text("scope admin")
    page.reload()
    sign_in(page, "narrow")
    expect(page.locator("#trouble")).to_contain_text("cannot score (403)")
    page.close()


def test_a_token_is_kept_for_the_tab_where_that_is_wished(context: BrowserContext, server: ServerProcess) -> None:
    page = context.new_page()
    page.goto(f"{server.api}/")
    press_on(page, page.get_by_label("Keep it until this tab is closed"), "Space")
    sign_in(page, "right")
    page.reload()
    page.locator("#work").wait_for()
    press_on(page, page.get_by_role("button", name="Sign out"))
    page.locator("#token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
    page.close()


def test_hostile_texts_are_texts(score_view: Page) -> None:
    page = score_view
    score(page, HOSTILE, (HOSTILE,))
    card = page.get_by_role("article", name="Answer 1")
    assert card.locator("img, script").count() == 0
    assert "<script>hacked=1</script> [U+202E]cat[U+202C]" in card.locator(".answer").inner_text()
    assert page.evaluate("window.hacked") is None
    assert "👩‍👩‍👧" in card.locator(".answer").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("view", ["score", "file", "live"])
def test_texts_stand_out_in_both_themes_and_nothing_is_wider_than_a_phone(page: Page, view: str) -> None:
    go_to(page, view)
    shown = {"score": "#results article", "file": "#file-report iframe, #file-report p", "live": "#live-table td"}[view]
    page.locator(shown).first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        assert weak_texts(page) == [], theme
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(
        "delete document.documentElement.dataset.theme;"
        "document.querySelectorAll('details').forEach(one => { one.open = false; })"
    )


def test_a_screen_reader_finds_names_and_landmarks(page: Page) -> None:
    go_to(page, "score")
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1, role
    unnamed = page.locator("button:visible, select:visible, input:visible, textarea:visible").evaluate_all(
        "all => all.filter(one => !one.textContent.trim() && !one.labels?.length && !one.ariaLabel)"
        ".map(one => one.outerHTML)"
    )
    assert unnamed == []
    assert page.locator("#announcer").get_attribute("aria-live") == "polite"


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21)
    assert contrast([119, 119, 119], [255, 255, 255]) == pytest.approx(4.48, abs=0.005)  # #777 just fails
