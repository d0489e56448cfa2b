"""`auto` with SmolLM2, which cannot judge: fitted by command, served, and refused where it adds nothing."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.judges.smollm2 import smollm2_repository
from tests.support.servers.server_process import ServerProcess

from gradewire import Auto, AutoParts, Client, ScoreReport, Status
from gradewire_cli.group import gradewire as gradewire_command

JUDGE = "smollm2-135m-instruct"
ENCODER = "all-MiniLM-L6-v2"
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Peru": "Lima", "Norway": "Oslo", "Kenya": "Nairobi",
    "Japan": "Tokyo", "Egypt": "Cairo", "Cuba": "Havana", "Chad": "N'Djamena", "Fiji": "Suva", "Mali": "Bamako",
}  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Of each capital: the name itself, a sentence with it, and a sentence with another one."""
    found = []
    for place, (country, capital) in enumerate(CAPITALS.items()):
        other = list(CAPITALS.values())[(place + 5) % len(CAPITALS)]
        for answer, label in ((capital, 1), (f"I think that it is {capital}", 1), (f"I think that it is {other}", 0)):
            question = f"What is the capital of {country}?"
            found.append({"question": question, "references": [capital], "prediction": answer, "label": label})
    return found


@pytest.fixture(scope="module")
def models(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of its own, over the same weights, so that a fit can be stored."""
    repository = tmp_path_factory.mktemp("auto") / "models"
    shutil.copytree(minilm / ENCODER, repository / ENCODER, copy_function=os.link)
    description = repository / ENCODER / "config.pbtxt"
    text = description.read_bytes()
    description.unlink()  # the link, so that what is written next is this repository's alone
    description.write_bytes(text)
    return repository


@pytest.fixture(scope="module")
def correctness(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What the command says of a fit on these rows."""
    directory = tmp_path_factory.mktemp("rows")
    file = directory / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows()), "utf-8")
    environment = {"GRADEWIRE_JUDGE_BACKEND": "embedded", "GRADEWIRE_JUDGE_REPOSITORY": str(smollm2_repository())}
    return CliRunner().invoke(
        gradewire_command,
        [
            *("calibrate", str(file), "--metric", f"auto?judge_model={JUDGE}", "--model", ENCODER),
            *(
                "--model-repository",
                str(models),
                "--disk-directory",
                str(directory / "cache"),
                "--resamples",
                "100",
                "--quiet",
            ),
        ],
        env=environment,
    )


@pytest.fixture(scope="module")
def client(models: Path, correctness: Result, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    assert correctness.exit_code == 0, correctness.output
    settings = {"model_repository": models, "judge_repository": smollm2_repository(), "judge_model": JUDGE}
    with ServerProcess(tmp_path_factory.mktemp("served"), **settings) as process, Client(process.address) as client:
        yield client


@pytest.fixture(scope="module")
def sampled(client: Client) -> ScoreReport:
    """Half of the rows by the judge too; its worker belongs to the server, and is started here."""
    return client.score(rows(), Auto(judge_budget=0.0, sample=0.5))


def parts_of(client: Client, metric: Auto) -> list[AutoParts]:
    found = []
    for item in client.score(rows(), metric):
        (result,) = item.scores.values()
        assert result.status is Status.OK, result.message
        assert isinstance(result.parts, AutoParts)
        found.append(result.parts)
    return found


def test_the_command_fits_prints_and_stores(correctness: Result) -> None:
    assert correctness.exit_code == 0, correctness.output
    for title in ("Bands, each valid with probability 0.9", "Held-out check: fitted on half a, measured on half b"):
        assert title in correctness.stdout
    assert "The judge compared with exact_match and correctness" in correctness.stdout
    assert "stored with all-MiniLM-L6-v2: fitted for auto/1" in correctness.stdout


def test_a_judge_that_adds_nothing_decides_nothing(client: Client) -> None:
    parts = parts_of(client, Auto(judge_budget=1.0))
    assert {each.decided_by for each in parts} == {"exact_match", "correctness"}
    assert {each.reason for each in parts} == {"refused"}
    assert not any(each.judge_status for each in parts)
    assert len({each.fit for each in parts}) == 1


def test_a_budget_of_nothing_accepts_everything(client: Client) -> None:
    parts = parts_of(client, Auto(judge_budget=0.0))
    assert {each.reason for each in parts} == {"certain"}
    assert [each.decided_by for each in parts[:3]] == ["exact_match", "correctness", "correctness"]


def test_the_sample_is_asked_and_a_line_gives_the_same_again(client: Client, sampled: ScoreReport) -> None:
    first = sampled
    (label,) = first.labels
    told = first.provenance[label]
    assert (told.model, told.judge_model) == (ENCODER, JUDGE)
    assert len(told.judge_digest) == 64
    again = client.score(rows(), told.line)
    for one, other in zip(first, again, strict=True):
        (before,), (after,) = one.scores.values(), other.scores.values()
        assert (before.score, before.correct, before.parts) == (after.score, after.correct, after.parts)
        assert isinstance(before.parts, AutoParts)
        assert before.parts.sampled == bool(before.parts.judge_status)
    parts = [each.scores[label].parts for each in first]
    assert 0 < sum(part.sampled for part in parts if isinstance(part, AutoParts)) < len(parts)


def test_another_judge_metric_needs_a_fit_of_its_own(client: Client) -> None:
    (item,) = client.score(rows()[:1], Auto(judge="judge_verdict"))
    (result,) = item.scores.values()
    assert result.status is Status.INVALID_PARAMETER
    assert "gradewire calibrate FILE --metric 'auto?judge=judge_verdict'" in result.message
