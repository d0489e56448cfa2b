"""The page's modules, one by one, in a real browser: each against what the client's own code says of the same."""

import ast
import csv
import io
import json
import random
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from gradewire._columns import ALIASES, CHOSEN_FIELDS, AmbiguousColumnsError, key_columns, similar_columns
from gradewire._rows import UnreadableValueError, text_of, texts_of, truth_of
from gradewire_cli.pages.texts import find_window
from gradewire_gateway.openapi import document

WORDS = [
    "cat",
    "Cats",
    "the",
    "a",
    "🐈",
    "naïve",
    "don't",
    "¿qué?",
    "北京",
    "3.5",
    "—",
    "x_y",
    "\U0001d4b3\U0001d4b4",
    "İ",
    "running",
    "…",
]
STATIC = resources.files("gradewire_gateway").joinpath("static")


def answer(route: Route) -> None:
    """A server that is busy the first time, and refuses every request with an item that is too much for it."""
    items = json.loads(route.request.post_data or "")["items"]
    predictions = [item["prediction"] for item in items]
    if "busy" in predictions and not ASKED:
        ASKED.append(predictions)
        problem = {"status": 429, "code": "resource_exhausted", "detail": "too much", "retryAfterS": 0.01}
        route.fulfill(status=429, json=problem)
    elif "bad" in predictions:
        route.fulfill(status=413, json={"status": 413, "code": "resource_exhausted", "detail": "too large"})
    elif "secret" in predictions:
        route.fulfill(status=403, json={"status": 403, "code": "permission_denied", "detail": "not yours"})
    else:
        results = [{"results": [{"score": len(text), "status": "STATUS_OK"}]} for text in predictions]
        route.fulfill(json={"items": results, "provenance": [{"line": "m/1"}]})


ASKED: list[list[str]] = []


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page beside the modules, which come from their files."""

    def answered(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name == "Score":
            answer(route)
        elif name.endswith(".js"):
            route.fulfill(body=STATIC.joinpath(name).read_bytes(), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>empty</title>", content_type="text/html")

    page = browser.new_page()
    page.route("**/*", answered)
    page.goto("http://modules.test/")
    yield page
    page.close()


def called(page: Page, module: str, script: str, given: Any = None) -> Any:
    """What a script gives, with the module's names in `m` and the argument in `given`."""
    body = f"async (given) => {{ const m = await import('/page/{module}'); {script} }}"
    return page.evaluate(body, given)


def test_windows_are_found_where_the_report_finds_them(page: Page) -> None:
    rng = random.Random(19)  # noqa: S311 - a sample
    pairs = []
    for _ in range(300):
        text = unicodedata.normalize("NFC", " ".join(rng.choices(WORDS, k=rng.randint(0, 12))))
        pairs.append(
            (
                text,
                " ".join(
                    rng.choices(
                        ["cat", "a", "the", "running", "run", "naïve", "dont", "北京", "35", "x_y"], k=rng.randint(1, 3)
                    )
                ),
            )
        )
    script = """return given.map(([text, window]) => {
      const found = m.findWindow(text, window);
      return found && [text.slice(found.start, found.end), found.exact, found.start];
    });"""
    ours = called(page, "window.js", script, pairs)
    for (text, window), found in zip(pairs, ours, strict=True):
        theirs = find_window(text, window)
        if theirs is None:
            assert found is None, (text, window)
        else:
            before = len(text[: theirs.start].encode("utf-16-le")) // 2
            assert found == [text[theirs.start : theirs.end], theirs.exact, before], (text, window)
    assert sum(found is not None for found in ours) > 50


def test_columns_have_the_names_that_the_client_knows(page: Page) -> None:
    names = called(page, "aliases.js", "return m.ALIASES;")
    assert names == {name: list(ALIASES[name]) for name in names}
    assert set(names) == set(ALIASES) - {"answer_a", "answer_b", "choices", "error_class", "flags", "image"}


def choice_of(columns: list[str]) -> tuple[Mapping[str, tuple[str, ...]], Sequence[Mapping[str, str]]]:
    try:
        return key_columns(tuple(columns), ("question", *CHOSEN_FIELDS)), []
    except AmbiguousColumnsError as error:
        question = tuple(similar_columns(ALIASES["question"], columns))
        return {"question": question, "references": (), "prediction": ()}, error.choices


def test_columns_are_chosen_as_the_client_chooses_them(page: Page) -> None:
    rng = random.Random(4)  # noqa: S311 - a sample
    usual = [*ALIASES["references"], *ALIASES["prediction"], *ALIASES["question"], "Ground Truth", "modelAnswer", "x"]
    tables = [list(dict.fromkeys(rng.choices(usual, k=rng.randint(1, 5)))) for _ in range(400)]
    script = "return given.map((columns) => [m.mapped(columns), m.unclear(columns)]);"
    refused = 0
    for columns, (found, unclear) in zip(tables, called(page, "aliases.js", script, tables), strict=True):
        named, choices = choice_of(columns)
        refused += len(choices) > 0
        either = "answer" in columns and not named["references"] + named["prediction"]
        expected = CHOSEN_FIELDS if either else {field for choice in choices for field in choice}
        assert set(unclear) == set(expected), columns
        assert {field: tuple(found[field]) for field in named} == named, columns
    assert refused > 50


def test_an_answer_that_is_null_is_empty(page: Page) -> None:
    script = """const { mapped } = await import('/page/aliases.js');
      const columns = mapped(Object.keys(given));
      try { return m.itemOf(given, columns, 0).item.prediction; } catch (error) { return error.message; }"""
    assert called(page, "values.js", script, {"ground_truth": "a", "answer": None}) == ""
    assert called(page, "values.js", script, {"ground_truth": "a"}) == "has no prediction"


@pytest.mark.parametrize(
    "value",
    ["cat", "", 1, 1.0, 2.5, 1e-7, 0.1, True, {"text": "cat"}, {"text": "a", "answer": "b"}, ["a"], None, -0.25],
)
def test_values_are_the_texts_that_the_client_takes_them_for(page: Page, value: Any) -> None:
    script = "try { return [m[given[0]](given[1], '')]; } catch (error) { return 'refused'; }"
    for name, theirs in (("textOf", text_of), ("textsOf", texts_of)):
        expected: Any
        try:
            expected = [theirs(value)]
        except UnreadableValueError:
            expected = "refused"
        assert called(page, "values.js", script, [name, value]) == expected, name


@pytest.mark.parametrize(
    "value", [True, False, "true", " FALSE ", "No", 0, 1, 1.0, "", None, "unsure", 2, "constructor"]
)
def test_truth_values_are_those_of_the_client(page: Page, value: Any) -> None:
    script = "try { return [m.truthOf(given, '')]; } catch (error) { return 'refused'; }"
    expected: Any
    try:
        expected = [truth_of(value)]
    except UnreadableValueError:
        expected = "refused"
    assert called(page, "values.js", script, value) == expected


def test_a_question_without_an_answer_needs_no_references(page: Page) -> None:
    script = """const { mapped } = await import('/page/aliases.js');
      try { return m.itemOf(given, mapped(Object.keys(given)), 3).item; } catch (error) { return error.message; }"""
    expected = {"id": "3", "prediction": "a", "references": [], "answerable": False}
    for row in ({"answerable": "false"}, {"answerable": False, "references": None}, {"answerable": 0, "answers": ""}):
        assert called(page, "values.js", script, {"prediction": "a", **row}) == expected
    assert called(page, "values.js", script, {"prediction": "a", "answerable": True}) == "has no references"


def test_numbers_that_a_browser_has_cut_are_refused(page: Page) -> None:
    script = "try { return m.textOf(JSON.parse(given), 'id'); } catch (error) { return error.message; }"
    assert "write it as a string" in called(page, "values.js", script, "12345678901234567890")


@pytest.mark.parametrize(
    "cell",
    [
        '["a", "b"]',
        "['a', \"it's\"]",
        "[0, 1]",
        "[a]",
        "['x\\n', 'é']",
        "[]",
        "['a' 'b']",
        "plain",
        "[['a']]",
        '[null, "a"]',
    ],
)
def test_cells_with_lists_are_read_as_the_client_reads_them(page: Page, cell: str) -> None:
    script = "try { return m.textsOf(given, ''); } catch (error) { return 'refused'; }"
    expected: Any
    try:
        expected = texts_of(cell)
    except UnreadableValueError:
        expected = "refused"
    if isinstance(expected, list) and None in expected:
        expected = "refused"  # as `as_texts` does
    assert called(page, "values.js", script, cell) == expected


def test_cells_are_read_whole_wherever_the_pieces_of_a_file_end(page: Page) -> None:
    rng = random.Random(7)  # noqa: S311 - a sample
    rows = [["id", "prediction", "x"]]
    rows += [["".join(rng.choices(',"\n;\té🐈 ab', k=rng.randint(0, 6))) for _ in range(3)] for _ in range(120)]
    rows = [rows[0], *([f"r{at}", *row[1:]] for at, row in enumerate(rows[1:]))]
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    script = """const whole = given.text, found = [];
      for (const size of [1, 2, 3, 7, 100, whole.length]) {
        const reader = new m.CellReader(), rows = [];
        for (let at = 0; at < whole.length; at += size) {
          for (const row of reader.rows(whole.slice(at, at + size), () => ',')) rows.push(row.values);
        }
        found.push(rows, reader.left);
      }
      return found;"""
    found = called(page, "reading.js", script, {"text": text.getvalue()})
    assert found == [rows, ""] * 6


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "a.jsonl",
            b'{"a": 1}\n\n[1]\n{"b"\n\xff\n{"a": 2}',
            [(0, {"a": 1}), (1, None), (2, None), (3, None), (4, {"a": 2})],
        ),
        (
            "a.csv",
            '\ufeffid;answer\r\n1;"a;\nb"\r\n2\r\n3;NaN\r\n'.encode(),
            [(0, {"id": "1", "answer": "a;\nb"}), (1, None), (2, {"id": "3", "answer": None})],
        ),
        ("a.csv", b'id,answer\n1,"open', [(0, None)]),
        ("a.txt", b"id\tanswer\n1\ta\n", [(0, {"id": "1", "answer": "a"})]),
        ("a.txt", b'{"id": 1}\n', [(0, {"id": 1})]),
    ],
)
def test_rows_of_files(page: Page, name: str, content: bytes, expected: list[Any]) -> None:
    script = """const file = new File([new Uint8Array(given.content)], given.name), found = [];
      for await (const row of m.rowsOf(file, ['id', 'answer'])) found.push([row.index, row.fields, row.problem]);
      return found;"""
    found = called(page, "reading.js", script, {"name": name, "content": list(content)})
    assert [(index, fields) for index, fields, _ in found] == expected
    assert all(bool(problem) == (fields is None) for _, fields, problem in found)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"id,id\n", "two columns id"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"id\n\xff\n", "not UTF-8"),
        ("a.json", b"[{}]", "JSON array"),
    ],
)
def test_files_that_cannot_be_read_say_why(page: Page, name: str, content: bytes, said: str) -> None:
    script = """try { for await (const row of m.rowsOf(new File([new Uint8Array(given.content)], given.name), [])); }
      catch (error) { return error.message; }"""
    assert said in called(page, "reading.js", script, {"name": name, "content": list(content)})


def test_cells_of_csv_are_no_formulas(page: Page) -> None:
    cells = called(
        page,
        "outputs.js",
        "return given.map(m.cell);",
        ["=1+1", "\uff1d1", "a,b", 'say "x"', -0.5, None, "@x", "line\nline"],
    )
    assert cells == ["'=1+1", "'\uff1d1", '"a,b"', '"say ""x"""', "-0.5", "", "'@x", '"line\nline"']


def test_a_report_that_had_to_wait_can_be_made_once_more_and_one_left_behind_is_ended(page: Page) -> None:
    script = """document.body.innerHTML = '<div id="place"></div><p id="announcer"></p>';
      const { fetch } = window, place = document.getElementById('place'), signals = [];
      const busy = () => Response.json({ status: 429, detail: 'another report' }, { status: 429 });
      const answers = [busy(), new Response('<p>made')];
      window.fetch = async (_path, options) => { signals.push(options.signal); return answers.shift(); };
      const frame = new m.ReportFrame(place, { report: { available: true, maxBytes: 99 } });
      await frame.make({ reported: 2, report: { blob: () => new Blob(['x']) } }, 'rows');
      const said = place.innerText;
      place.querySelector('button').click();
      await new Promise((resolve) => { new MutationObserver(() => { if (place.querySelector('iframe')) resolve(); })
        .observe(place, { childList: true }); });
      const sandbox = place.querySelector('iframe').getAttribute('sandbox');
      frame.stop();
      window.fetch = fetch;
      return [said, sandbox, place.querySelectorAll('h3').length, signals.map((one) => one.aborted)];"""
    said, *found = called(page, "report.js", script)
    assert "There is no report: another report" in said
    assert found == ["allow-scripts", 1, [True, True]]


def test_labelled_rows_beyond_what_a_report_takes_are_let_go(page: Page) -> None:
    script = """const outputs = new m.Outputs(['m'], given), item = { id: 'a', prediction: 'p'.repeat(90) };
      for (let index = 0; index < 50; index += 1) {
        outputs.add({ row: { index }, item, more: { label: 1 }, scores: { m: { score: 1, status: 'OK' } } });
      }
      return [outputs.reported, outputs.tooManyForReport, outputs.report.blob('').size > 0];"""
    assert called(page, "outputs.js", script, 1000) == [50, True, False]
    assert called(page, "outputs.js", script, 100_000) == [50, False, True]


def test_snippets_of_python_are_programs(page: Page) -> None:
    item = {"id": "a", "question": "", "references": ["it's", 'a "cat"\n🐈\\'], "prediction": "\u2028</script>"}
    script = "return m.pythonProgram({items: [given]}, [{line: 'smile:v1/1?x=1'}], true);"
    tree = ast.parse(called(page, "snippets.js", script, item))
    items, lines = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert items == [{name: value for name, value in item.items() if value}]
    assert lines == ["smile:v1/1?x=1"]


def test_rates_and_quantiles_of_two_snapshots(page: Page) -> None:
    before = {"atS": 10, "calls": "5", "items": "7", "latencyCounts": ["1", "4", "0"], "textsBySource": {"memory": "3"}}
    now = {
        "atS": 12,
        "calls": "15",
        "items": "27",
        "latencyBoundsS": [0.1, 0.2],
        "latencyCounts": ["6", "9", "0"],
        "textsBySource": {"memory": "6", "computed": "1"},
    }
    rates = called(page, "live-view.js", "return m.ratesOf(given[0], given[1]);", [before, now])
    assert rates == pytest.approx({"callsPerS": 5, "itemsPerS": 10, "half": 0.1, "most": 0.19, "hits": 0.75})
    restarted = called(page, "live-view.js", "return m.ratesOf(given[1], given[0]).callsPerS;", [before, now])
    assert json.dumps(restarted) == "NaN", "a server that began again has no rates yet"


RUN = """
  const catalog = { partsOf: () => null }, asked = [{ label: 'm', spec: { m: {} } }];
  const columns = (await import('/page/aliases.js')).mapped(['reference', 'pred']);
  const rows = async function* () {
    for (const [index, pred] of given.entries()) {
      const fields = pred === null ? null : { reference: 'r', pred };
      yield { index, place: `line ${index}`, fields, problem: 'is odd' };
    }
  };
  const found = [], pauses = [];
  const stop = new AbortController(), onPause = (seconds, why) => pauses.push(why);
  try {
    for await (const row of m.scored(rows(), { columns, asked, catalog, signal: stop.signal, onPause })) {
      found.push([row.row.index, row.scores.m.score, row.scores.m.status]);
    }
  } catch (error) { found.push(error.status); }
  return [found, pauses];
"""


def test_a_run_waits_for_a_busy_server_and_finds_the_row_at_fault_by_halves(page: Page) -> None:
    given = [*(f"a{at % 9}" for at in range(70)), "bad", None, "busy", 3, ""]
    found, pauses = called(page, "run.js", RUN, given)
    assert [index for index, *_ in found] == list(range(75)), "in their order"
    assert [result for result in found if result[2] != "OK"] == [
        [70, None, "INVALID_INPUT"],
        [71, None, "INVALID_INPUT"],
    ]
    assert pauses == ["too much"]


def test_a_run_ends_where_the_token_is_not_good_for_it(page: Page) -> None:
    found, _ = called(page, "run.js", RUN, ["a"] * 40 + ["secret"] + ["a"] * 40)
    assert found[-1] == 403
    assert len(found) == 1 + 32, "what was scored before stands"


CARD = """
  const { Catalog } = await import('/page/catalog.js');
  const catalog = new Catalog({}, given.document);
  const asked = given.names.map((name) => ({ label: name, metric: { name, minimum: 0, maximum: 1 } }));
  const item = { prediction: 'a cat', references: ['cat', 'dog'] };
  const results = given.results.map((result, metricIndex) => ({ ...result, metricIndex }));
  const card = m.answerCard({ name: 'Answer 1', item, results, asked, provenance: [], catalog });
  return [...card.querySelectorAll('.metric')].map((one) => one.textContent);
"""


def test_results_say_who_decided_and_why_there_is_no_score(page: Page) -> None:
    asked = {"decidedBy": "judge", "reason": "band", "judgeStatus": "OK", "judgeScore": 0.75}
    band = {"bandLower": 0.2, "bandUpper": 0.8}
    given = {
        "document": document(),
        "names": ["auto", "correctness", "correctness", "lave", "smile"],
        "results": [
            {"status": "STATUS_OK", "score": 1, "auto": asked},
            {"status": "STATUS_OK", "score": 0.9, "correct": True, "correctness": band},
            {
                "status": "STATUS_OK", "score": 0.5, "warnings": ["WARNING_UNCERTAIN"],
                "correctness": {**band, "uncertainReason": "unlike"},
            },
            {"status": "STATUS_TIMEOUT", "message": "not done in time"},
            {"status": "STATUS_OK", "score": 0.1, "warnings": ["WARNING_TRUNCATED"], "smile": {"sentence": 0.5}},
        ],
    }  # fmt: skip
    auto, certain, uncertain, failed, smile = called(page, "results.js", CARD, given)
    assert "Decided by judge (inside the band); the judge: OK." in auto
    assert "Decided by the fit: the probability lies outside the band 0.200 to 0.800." in certain
    assert "UNCERTAIN" in uncertain
    assert "not reliable: the answer is unlike the answers of the fit." in uncertain
    assert "TIMEOUT" in failed
    assert "not done in time" in failed
    assert "exact0" in smile, "a part that JSON leaves out is 0"
    assert "TRUNCATED: a text was longer" in smile
