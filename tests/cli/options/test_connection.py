"""The client that the connection options make."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.group import main
from gradewire_cli.options import connection
from gradewire_cli.options.connection import ConnectionOptions
from gradewire_cli.options.judge import judge_server_of
from gradewire_cli.problems import InputError


@pytest.mark.parametrize(("threads", "settings"), [(None, {}), (3, {"workers": 3, "lone_run_threads": 3})])
def test_an_engine_takes_as_many_threads_as_it_is_given(
    threads: int | None, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def transport(**values: Any) -> StubTransport:
        given.update(values)
        return StubTransport()

    monkeypatch.setattr(connection, "embedded_transport", transport)
    asked = ConnectionOptions(
        server=None, token=None, tls=None, cache_dir=tmp_path, deadline_s=60, engine_threads=threads
    )
    asked.client()
    assert given == {"max_deadline_s": 600.0, "disk_directory": tmp_path, **settings}


def test_an_engine_runs_its_judge_on_the_device_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def transport(**values: Any) -> StubTransport:
        given.append(values)
        return StubTransport()

    monkeypatch.setattr(connection, "embedded_transport", transport)
    monkeypatch.delenv("GRADEWIRE_SERVER", raising=False)
    for device in (None, "cuda:1"):
        asked = ConnectionOptions(server=None, token=None, tls=None, cache_dir=None, deadline_s=60, judge_device=device)
        asked.client()
        assert asked.arguments == ([] if device is None else ["--judge-device", device])
    assert [each.get("judge_device", "unset") for each in given] == ["unset", "cuda:1"]


SERVER = ("--judge-url", "http://h", "--judge-remote-model", "m")


def options(**given: str | int) -> dict[str, str | int | None]:
    names = ("judge_url", "judge_key_env", "judge_remote_model", "judge_reasoning_tokens", "judge_backend")
    return dict.fromkeys(names) | given


def test_the_key_comes_from_the_variable_and_stands_in_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "hunter2")
    server = judge_server_of(options(judge_url="http://h/v1", judge_key_env="MY_KEY", judge_remote_model="m"))
    assert server is not None
    assert server.settings() == {
        "judge_backend": "openai",
        "judge_url": "http://h/v1",
        "judge_remote_model": "m",
        "judge_token": "hunter2",
    }
    assert "hunter2" not in " ".join([*server.arguments, repr(server)])
    assert server.arguments == [
        *("--judge-url", "http://h/v1"),
        *("--judge-remote-model", "m"),
        *("--judge-key-env", "MY_KEY"),
    ]
    assert judge_server_of(options()) is None


def test_what_a_judge_may_think_is_a_setting_and_a_part_of_the_line() -> None:
    server = judge_server_of(options(judge_url="http://h/v1", judge_remote_model="m", judge_reasoning_tokens=2000))
    assert server is not None
    assert server.settings()["judge_reasoning_tokens"] == 2000
    assert server.arguments[-2:] == ["--judge-reasoning-tokens", "2000"]
    none = judge_server_of(options(judge_url="http://h/v1", judge_remote_model="m", judge_reasoning_tokens=0))
    assert none is not None
    assert none.settings()["judge_reasoning_tokens"] == 0  # where the variable says something else
    assert none.arguments[-2:] == ["--judge-reasoning-tokens", "0"]


def test_a_decision_model_is_named_as_such() -> None:
    asked = options(judge_url="http://h/v1", judge_remote_model="m", judge_backend="decisions")
    server = judge_server_of(asked)
    assert server is not None
    assert server.settings() == {
        "judge_backend": "decisions",
        "judge_url": "http://h/v1",
        "judge_remote_model": "m",
    }
    assert server.arguments == [
        *("--judge-url", "http://h/v1"),
        *("--judge-backend", "decisions"),
        *("--judge-remote-model", "m"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge-backend", "decisions"], "Add --judge-url URL"),
        ([*SERVER, "--judge-backend", "triton"], "'openai', 'decisions'"),
        ([*SERVER, "--judge-backend", "decisions", "--judge-reasoning-tokens", "9"], "writes no tokens"),
        (["--judge-url", "http://h/v1"], "--judge-url needs --judge-remote-model NAME"),
        (["--judge-key-env", "X"], "Add --judge-url URL"),
        (["--judge-reasoning-tokens", "9"], "Add --judge-url URL"),
        (["--judge-url", "http://h", "--judge-remote-model", "m", "--judge-reasoning-tokens", "-1"], "-1"),
        (
            ["--judge-url", "http://h", "--judge-remote-model", "m", "--judge-key-env", "NO_SUCH"],
            "NO_SUCH: the variable is not set",
        ),
        (["--judge-url", "http://h", "--judge-remote-model", "m", "--server", "h:1"], "for scoring in this process"),
        (["--judge-device", "cuda", "--server", "h:1"], "--judge-device is only for scoring in this process"),
        ([*SERVER, "--judge-device", "cuda"], "--judge-device is only for a judge in this process"),
    ],
)
def test_wrong_usage_says_the_way_out(arguments: list[str], said: str, command: Command, tmp_path: Path) -> None:
    done = command("score", write_rows(tmp_path / "a.jsonl", []), *arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_a_device_that_is_none_is_refused_in_one_line(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{"references": ["a"], "prediction": "a"}])
    monkeypatch.setattr(sys, "argv", ["gradewire", "score", str(file), "--judge-device", "gpu"])
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1), told
    assert "judge_device: must be cpu, cuda or cuda:N" in told


@pytest.mark.parametrize("pasted", ["sk-realkey-abc", "hf_realkey", "REALKEY123", "Bearer realkey", "realkey\n"])
def test_a_key_in_place_of_the_variables_name_is_refused_and_not_repeated(
    command: Command, tmp_path: Path, pasted: str
) -> None:
    server = ("--judge-url", "http://h", "--judge-remote-model", "m", "--judge-key-env", pasted)
    done = command("score", write_rows(tmp_path / "a.jsonl", []), *server)
    assert done.exit_code == 2
    assert "Give the name of the variable that contains the key, never the key itself" in done.stderr
    assert "realkey" not in done.output.casefold()


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "user:hunter2@host", "http://user:hunter2@host/v1", "ftp://host/v1", "http://"]
)
def test_an_address_that_is_none_is_refused_in_one_line(
    url: str, minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{"question": "q", "references": ["a"], "prediction": "a"}])
    command = ["score", str(file), "--metrics", "judge_verdict", "--judge-url", url, "--judge-remote-model", "m"]
    monkeypatch.setattr(sys, "argv", ["gradewire", *command])
    settings = {"GRPC_VERBOSITY": "NONE", "GRADEWIRE_MODEL_REPOSITORY": minilm, "GRADEWIRE_DISK_DIRECTORY": ""}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1), told
    assert "--judge-url" in told
    assert "must be a base address" in told
    assert ("Write http:// or https:// in front" in told) is ("://" not in url)
    assert "hunter2" not in told


def test_a_key_that_another_machine_does_not_have_is_an_error_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    server = judge_server_of(options(judge_url="http://h/v1", judge_key_env="MY_KEY", judge_remote_model="m"))
    assert server is not None
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(InputError, match="--judge-key-env MY_KEY: this variable is not set on"):
        server.settings()
