"""`gradewire score`: what judges cost, before (--dry-run) and after."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cli.conftest import Command, write_rows
from tests.cli.score.judging_server import JudgingStub, judged
from tests.support.judges.counting_server import counting_server

from gradewire_cli.group import gradewire
from gradewire_cli.options.judge import JudgePrices
from gradewire_proto.v1 import scoring_pb2

ROWS: list[dict[str, Any]] = [
    {"question": "Who wrote it?", "references": ["Ada"], "prediction": said}
    for said in ("Ada", "Bob", "Ada", "Eve, I think")
]
YES = {"question": "Is it red?", "references": ["yes"], "prediction": "yes"}
PRICES = ("--judge-prices", "2,10")


class PaidStub(JudgingStub):
    """A server whose judges run elsewhere."""

    def __init__(self, *, told: bool = True) -> None:
        super().__init__(judged if told else self.untold)
        for model in self.models.models:
            if model.kind == "judge":
                model.numeric_class = "remote without temperature"

    @property
    def models(self) -> Any:
        return self._models

    @staticmethod
    def untold(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = judged(request)
        for result in reply.items[0].results if reply.items else ():
            result.judge.prompt_tokens = result.judge.generated_tokens = 0
        return reply


def numbers(text: str, pattern: str) -> list[int]:
    found = re.search(pattern, text)
    assert found is not None, text
    return [int(each) for each in found.groups()]


COUNTS = r"estimated (\d+) tokens read and at most (\d+) written"


def test_a_dry_run_reckons_a_cascade_as_if_its_judge_were_asked_about_every_row(
    command: Command, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "rows.jsonl", ROWS)
    alone, cascade = (
        command("score", file, "--metrics", line, "--dry-run", *PRICES, stub=PaidStub()) for line in ("lave", "auto")
    )
    assert cascade.exit_code == 0, cascade.output
    assert numbers(cascade.stdout, COUNTS) == numbers(alone.stdout, COUNTS)
    assert "auto: upper bound, because the judge only grades the rows in the band" in cascade.stdout
    assert "as if" not in alone.stdout


def test_the_judge_of_a_cascade_is_looked_for_and_its_budget_is_an_option(command: Command, tmp_path: Path) -> None:
    file, stub = write_rows(tmp_path / "rows.jsonl", ROWS), PaidStub()
    unknown = command("score", file, "--metrics", "auto?judge_model=nobody", stub=stub)
    assert "unknown judge nobody" in unknown.output
    metrics = ("--metrics", "auto,auto?risk=0.2,smile")
    assert command("score", file, *metrics, "--judge-budget", "0.3", stub=stub).exit_code == 0
    mine, own, _ = stub.requests[-1].metrics
    assert (mine.auto.judge_budget, mine.auto.HasField("risk")) == (0.3, False)
    assert (own.auto.risk, own.auto.HasField("judge_budget")) == (0.2, False)
    both = command("score", file, *metrics, "--judge-budget", "0.3", "--risk", "0.1", stub=stub)
    assert "--judge-budget and --risk are mutually exclusive" in both.output
    for line in ("smile", "auto?risk=0.2"):
        none = command("score", file, "--metrics", line, "--risk", "0.1", stub=stub)
        assert "--risk needs an auto metric in --metrics that sets neither" in none.output


def test_remarks_on_the_judge_of_a_cascade_are_told(command: Command, tmp_path: Path) -> None:
    done = command("score", write_rows(tmp_path / "rows.jsonl", ROWS), "--metrics", "auto", stub=PaidStub())
    assert "judge good: reads English best" in done.stderr


@pytest.fixture(autouse=True)
def no_judge_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_JUDGE_REPOSITORY", str(tmp_path / "judges"))


def test_a_dry_run_says_calls_tokens_and_price_and_asks_nobody(command: Command, tmp_path: Path) -> None:
    rows = [*ROWS, YES, {**YES, "question": ""}]
    file, stub = write_rows(tmp_path / "a.jsonl", rows), PaidStub()
    file.write_text(file.read_text() + "no row\n")
    out = tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "smile,lave,judge_grade", "--dry-run", *PRICES, "--out", out, stub=stub)
    assert done.exit_code == 0, done.output
    assert stub.requests == []
    assert not out.exists()
    lave, grade, total, price, *rest = done.stdout.splitlines()
    # "Ada" twice is one question, the rule knows yes, and a row without a question cannot be judged.
    assert lave.startswith("lave: 3 calls (3 rows, 1 repeated, 2 without a judge call), estimated ")
    assert grade.startswith("judge_grade: 6 calls (3 rows, ")
    read, written = numbers(total, f"total: 9 calls, {COUNTS}")
    of_lave, of_grade = numbers(lave, COUNTS), numbers(grade, COUNTS)
    assert [read, written] == [of_lave[0] + of_grade[0], of_lave[1] + of_grade[1]]
    assert 3 * 300 < of_lave[0] < 3 * 1000
    assert of_lave[1] == 3 * 48
    assert price == f"price about {(2 * read + 10 * written) / 1e6:.4g}, estimated"
    assert any("prompt tokens are estimated" in line for line in rest)
    assert any(line.startswith("not included: a few capability checks") for line in rest)
    assert "left out 1 row, because it cannot be scored" in rest
    assert rest[-1].startswith("nothing was sent or scored")


def test_thoughts_and_reasons_are_reckoned(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS[:1])

    def written(line: str) -> int:
        done = command("score", file, "--metrics", line, "--dry-run", stub=PaidStub())
        assert done.exit_code == 0, done.output
        return numbers(done.stdout, COUNTS)[1]

    plain, reasoned = written("lave"), written("lave?mode=rationale")
    assert (plain, reasoned) == (48, 48 + 48)
    settings = {"backend": "openai", "url": "http://127.0.0.1:9/v1", "remote_model": "m", "reasoning_tokens": "500"}
    for name, value in settings.items():
        monkeypatch.setenv(f"GRADEWIRE_JUDGE_{name.upper()}", value)
    assert (written("lave"), written("lave?mode=rationale")) == (548, 48 + 48 + 1000)


@pytest.mark.parametrize("given", ["variable", "option"])
def test_thoughts_of_the_judge_of_the_options_are_reckoned(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS[:1])
    option: tuple[str, ...] = ("--judge-reasoning-tokens", "2000")
    if given == "variable":
        monkeypatch.setenv("GRADEWIRE_JUDGE_REASONING_TOKENS", "2000")
        option = ()
    judge = ("--judge-url", "http://127.0.0.1:9/v1", "--judge-remote-model", "m", *option)
    done = command("score", file, "--metrics", "lave", "--dry-run", *judge, stub=PaidStub())
    assert done.exit_code == 0, done.output
    assert numbers(done.stdout, COUNTS)[1] == 2048


def test_a_decision_model_reads_no_demonstrations_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS[:1])
    judge = ("--judge-url", "http://127.0.0.1:9/v1", "--judge-remote-model", "m")

    def tokens(metric: str, *options: str) -> list[int]:
        done = command("score", file, "--metrics", metric, "--dry-run", *judge, *options, stub=PaidStub())
        assert done.exit_code == 0, done.output
        return numbers(done.stdout, COUNTS)

    chat, decision = tokens("lave"), tokens("lave", "--judge-backend", "decisions")
    assert 0 < decision[0] < 250 < chat[0]
    assert decision[1] == 0
    assert tokens("lave?mode=rationale", "--judge-backend", "decisions") == [0, 0]


def test_what_a_judge_of_another_server_may_think_is_not_known_here(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS[:1])
    done = command("score", file, "--metrics", "lave", "--dry-run", "--server", "h:1", stub=PaidStub())
    assert done.exit_code == 0, done.output
    assert "and estimated 48 written" in done.stdout
    assert "at most" not in done.stdout
    assert "the server's judge_reasoning_tokens" in done.stdout


def test_what_is_counted_exactly_is_no_estimate() -> None:
    prices = JudgePrices(2, 10)
    assert prices.text(1_000_000, 0, at_most=True) == "price at most 2"
    assert prices.text(1_000_000, 0, estimated=True) == "price about 2, estimated"
    assert prices.text(1_000_000, 0) == "price 2"


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ((), "price unknown (give --judge-prices, the prices of a million tokens read and written)"),
        (("--judge-prices", "0, 0"), "price about 0, estimated"),
    ],
)
def test_an_unknown_price_is_said(command: Command, tmp_path: Path, prices: tuple[str, ...], said: str) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "lave", "--dry-run", *prices, stub=PaidStub())
    assert said in done.stdout.splitlines()
    here = command("score", file, "--metrics", "lave", "--dry-run", *prices, stub=JudgingStub())
    assert ("price: none, because the judge runs in the server" in here.stdout) == (not prices)


def test_prices_come_from_variables_too(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_JUDGE_PRICES", "2,10")
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    assert "price about 0.0" in command("score", file, "--metrics", "lave", "--dry-run", stub=PaidStub()).stdout


def test_what_makes_no_sense_is_refused(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    for arguments, said in (
        (("--resume", "--out", tmp_path / "o.jsonl"), "--dry-run estimates all rows and cannot be combined with --res"),
        (("--judge-prices", "nan,1"), "nan is not a finite number"),
        (("--judge-prices", "1,-1"), "-1.0 is not in the range"),
        (("--judge-prices", "2"), "'2' is not two prices with a comma between them"),
        (("--metrics", "lave?prompt=mine/9"), "mine/9"),
        (("--metrics", "judge_verdict?image=true"), "--dry-run cannot estimate image=true"),
    ):
        refused = command("score", file, "--dry-run", *arguments, stub=PaidStub())
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.output
    free = command("score", file, "--dry-run", "--metrics", "smile", stub=PaidStub())
    assert (free.exit_code, free.stdout) == (0, "no metric uses a judge, so there are no calls and no cost\n")


def test_the_summary_says_what_a_run_cost(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", [*ROWS, {**YES, "prediction": "rule"}])
    run = ("score", file, "--metrics", "lave")
    done = command(*run, *PRICES, stub=PaidStub())
    assert "in this run, the judge read 3200 tokens and wrote 80, price 0.0072" in done.stderr
    unpriced = command(*run, stub=PaidStub())
    assert "wrote 80, price unknown (give --judge-prices, the prices" in unpriced.stderr
    here = command(*run, stub=JudgingStub())
    assert "in this run, the judge read 3200 tokens and wrote 80\n" in here.stderr


def test_tokens_that_are_not_told_are_unknown_in_rows_and_summary(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "lave", *PRICES, stub=PaidStub(told=False))
    first, second, *_ = [json.loads(line)["scores"]["lave"] for line in done.stdout.splitlines()]
    assert "prompt_tokens" not in first
    assert second["prompt_tokens"] == 800
    assert "4 judged; 800 tokens read and 20 written for each of 3;" in done.stderr
    assert "2400 tokens and wrote 60, price 0.0054; the number of tokens is unknown for 1 rows" in done.stderr
    alone = write_rows(tmp_path / "b.jsonl", ROWS[:1])
    done = command("score", alone, "--metrics", "lave", *PRICES, stub=PaidStub(told=False))
    assert "the judge's server does not report this run's tokens, so the price is unknown" in done.stderr


def label_of(shown: str) -> str:
    """Return a label, except for the answers of Eve."""
    return "Hm" if "Eve" in shown else "correct"


def test_a_paid_judge_is_asked_as_often_as_the_dry_run_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_rows(tmp_path / "a.jsonl", [*ROWS, YES])
    run = ["score", str(file), "--metrics", "lave", "--disk-directory", str(tmp_path / "cache"), *PRICES]
    with counting_server(label_of, written=5) as server:
        port = server.server_address[1]
        settings = {"judge_backend": "openai", "judge_url": f"http://127.0.0.1:{port}/v1", "judge_remote_model": "m"}
        for name, value in {**settings, "model_repository": str(tmp_path)}.items():
            monkeypatch.setenv(f"GRADEWIRE_{name.upper()}", value)
        reckoned = CliRunner().invoke(gradewire, [*run, "--dry-run"])
        assert reckoned.exit_code == 0, reckoned.output
        assert server.asked == 0  # type: ignore[attr-defined]
        assert reckoned.stdout.startswith("lave: 3 calls (3 rows, 1 repeated, 1 without a judge call)")
        done = CliRunner().invoke(gradewire, [*run, "--fail-on", "never"])
        assert done.exit_code == 0, done.output
        assert server.asked == 3  # type: ignore[attr-defined]
    eve = json.loads(done.stdout.splitlines()[3])["scores"]["lave"]
    assert (eve["status"], eve["prompt_tokens"], eve["generated_tokens"]) == ("UNPARSABLE", 100, 5)
    assert "decided_by" not in eve
    # The server is paid for the answer that could not be read, too.
    assert "in this run, the judge read 300 tokens and wrote 15, price 0.00075" in done.stderr, done.stderr
