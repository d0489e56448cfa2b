import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gradewire_cli import main
from gradewire_stats import MissingScipyError
from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows

HEAVY = ("gradewire_server", "gradewire_models", "rich", "grpc", "scipy", "pyarrow", "onnxruntime")
Main = Callable[..., tuple[int, str, str]]


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """The entry point itself: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gradewire", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(str(ended.value.code)), out, err

    return call


def test_its_end_looks_through_no_imported_object() -> None:
    done = python(
        "import atexit, gc, sys\n"
        "from gradewire_cli import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "sys.argv = ['gradewire', '--version']\n"
        "main()"
    )
    assert done.stdout.splitlines()[-1] == "True", done.stderr


def test_help_loads_nothing_heavy() -> None:
    done = python(
        "import sys\n"
        "from gradewire_cli.group import gradewire\n"
        "gradewire.main(['--help'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr
    assert all(f"  {name} " in done.stdout for name in ("agree", "models", "prepare", "score", "serve", "triton"))


@pytest.mark.parametrize("command", ["score", "agree", "prepare", "serve", "models", "triton"])
def test_every_help_has_examples(command: str, run: Main) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"gradewire {command} " in out.partition("Examples:")[2]


def test_options_of_rewards_name_their_values(run: Main) -> None:
    _, out, _ = run("gateway", "--help-all")
    assert "--rewards-metric METRIC" in out
    assert "--rewards-slime-key NAME" in out


def test_without_the_server_extra_it_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"references": "a", "prediction": "b"}\n')
    # Nothing of the light client needs these, the server does.
    done = python(
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('pydantic', 'pydantic_settings', 'prometheus_client'), None))\n"
        "from gradewire_cli import main\n"
        f"for arguments in (['serve'], ['score', {str(file)!r}]):\n"
        "    sys.argv[1:] = arguments\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        "        print(ended.code)\n"
    )
    assert done.stdout == "2\n2\n"
    assert done.stderr.count("pip install 'gradewire[server]'\n") == 2, done.stderr
    assert done.stderr.count("\n") == 2, done.stderr


def test_agreement_without_scipy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    one = np.array([0.0, 1.0])
    with pytest.raises(MissingScipyError, match=r"pip install 'gradewire\[agree\]'"):
        agreement(JudgedRows({"m": one}, {"m": one}, one, ["", ""], ["", ""], ["", ""]))


@pytest.mark.parametrize("group", ["bench", "models", "triton"])
def test_a_group_without_a_command_lists_its_commands(group: str, run: Main) -> None:
    code, out, err = run(group)
    assert (code, out) == (2, "")
    assert err.startswith(f"Usage: gradewire {group} [OPTIONS] COMMAND [ARGS]...\n\n  ")
    assert "\nCommands:\n" in err


def test_wrong_usage_is_one_line(run: Main) -> None:
    assert run("score") == (2, "", "Error: Missing argument 'FILE...'. (see gradewire score --help)\n")
    code, _, err = run("skore")
    assert (code, err.count("\n")) == (2, 1)
    assert "No such command 'skore'" in err


def test_debug_shows_where_it_came_from(run: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("score", "nowhere.jsonl")[2] == "Error: nowhere.jsonl: No such file or directory\n"
    monkeypatch.setenv("GRADEWIRE_DEBUG", "1")
    code, _, err = run("score", "nowhere.jsonl")
    assert code == 2
    assert "Traceback" in err


def test_serve_has_a_flag_for_every_setting_and_hides_secrets(run: Main) -> None:
    flags = (
        "--port",
        "0",
        "--memory-max-bytes",
        "64MiB",
        "--http-port",
        "",
        "--redis-url",
        "redis://:secret@cache:6379",
    )
    code, settings, _ = run("serve", "--print-settings", *flags)
    assert code == 0
    assert "port = 0\n" in settings
    assert 'http_port = ""\n' in settings
    assert "memory_max_bytes = 67108864\n" in settings
    assert "secret" not in settings
    names = [line.partition(" = ")[0] for line in settings.splitlines()]
    helped = run("serve", "--help-all")[1]
    assert [name for name in names if f"--{name.replace('_', '-')}" not in helped] == []


def test_wrong_setting_is_one_line(run: Main) -> None:
    code, _, err = run("serve", "--drain-s", "-1")
    assert code == 2
    assert err.startswith("Error: drain_s: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("given", "wanted"), [("", "NONE"), ("ERROR", "ERROR")])
def test_grpc_writes_nothing_of_its_own_unless_it_is_asked_to(given: str, wanted: str) -> None:
    done = python(
        "import atexit, os, sys\n"
        f"os.environ.update(GRPC_VERBOSITY={given!r}) if {given!r} else os.environ.pop('GRPC_VERBOSITY', None)\n"
        "from gradewire_cli import main\n"
        "sys.argv = ['gradewire', '--version']\n"
        "atexit.register(lambda: print(os.environ['GRPC_VERBOSITY']))\n"
        "main()"
    )
    assert done.stdout.splitlines()[-1] == wanted, done.stdout + done.stderr
