"""`gradewire models list`: of this machine, and of a server."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer
from tests.support.debian.wordnet import wordnet_files

from gradewire.testing import StubTransport
from gradewire_proto.v1 import models_pb2

LISTED = models_pb2.ListModelsResponse(
    server_version="9.9",
    models=[
        models_pb2.Model(
            name="mini",
            kind="encoder",
            state=models_pb2.MODEL_STATE_LOADED,
            digest="ab" * 32,
            is_default=True,
            dims=384,
            max_tokens=256,
            licence="Apache-2.0",
            numeric_class="fp32-cpu",
            remarks=["a remark"],
            without_metrics={"correctness": "it has no fit"},
        ),
        models_pb2.Model(
            name="big",
            kind="judge",
            state=models_pb2.MODEL_STATE_MISSING,
            message="not built\x1b[2J",
            how_to_get="gradewire models build big",
        ),
        models_pb2.Model(
            name="eyes",
            kind="judge",
            state=models_pb2.MODEL_STATE_BUILT,
            is_default=True,
            numeric_class="remote",
            sees_images=True,
        ),
        models_pb2.Model(name="blind", kind="judge", state=models_pb2.MODEL_STATE_LOADED, numeric_class="q4"),
        models_pb2.Model(name="unasked", kind="judge", state=models_pb2.MODEL_STATE_BUILT, numeric_class="remote"),
    ],
    metrics=[
        models_pb2.Metric(name="bleu", version=1, maximum=1, available=True),
        models_pb2.Metric(name="meteor", version=1, maximum=1, missing="WordNet's files are missing"),
        models_pb2.Metric(name="lave", version=2, maximum=1, available=True, needs_judge=True),
    ],
    comparisons=[models_pb2.Metric(name="compare", version=1, needs_judge=True, missing="no judge is here")],
    limits=models_pb2.Limits(max_items_per_request=1000),
)


def test_a_servers_models_metrics_and_limits_are_listed(command: Command) -> None:
    stub = StubTransport(answer, models=LISTED)
    done = command("models", "list", "--server", "127.0.0.1:50051", stub=stub)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "127.0.0.1:50051: gradewire 9.9",
        f"encoder mini (default): LOADED, digest {'ab' * 32}",
        "  Apache-2.0, 384 dims, at most 256 tokens, fp32-cpu",
        "  a remark",
        "  cannot compute correctness: it has no fit",
        "judge big: MISSING",
        "  not built",
        "  to get this model, run this on the server's machine: gradewire models build big",
        "judge eyes (default): BUILT",
        "  remote, sees pictures",
        "judge blind: LOADED",
        "  q4, sees no pictures",
        "judge unasked: BUILT",
        "  remote",
        "metrics:",
        "  bleu/1: 0 to 1",
        "  meteor/1: 0 to 1",
        "    unavailable: WordNet's files are missing",
        "  lave/2: 0 to 1 (needs a judge)",
        "comparisons of two answers:",
        "  compare/1 (needs a judge)",
        "    unavailable: no judge is here",
        "limits of a request:",
        "  max_items_per_request: 1000",
    ]


def test_the_variable_names_the_server_and_embedded_does_not(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", "127.0.0.1:50051")
    stub = StubTransport(answer, models=LISTED)
    assert "encoder mini" in command("models", "list", stub=stub).stdout
    here = command("models", "list", "--embedded", "--model-repository", tmp_path, stub=stub)
    assert here.exit_code == 0, here.output
    assert f"repository: {tmp_path}" in here.stdout
    assert "encoder mini" not in here.stdout


def test_the_list_of_this_machine_says_whether_wordnet_is_there(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", str(tmp_path))
    done = command("models", "list", "--model-repository", tmp_path)
    assert done.exit_code == 0, done.output
    told = done.stdout.splitlines()[-1]
    assert told.startswith("metric meteor is unavailable here: WordNet's files are missing: install them")
    assert "apt-get install wordnet-base" in told
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", str(wordnet_files()))
    assert "meteor" not in command("models", "list", "--model-repository", tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--server", "localhost"), "write HOST:PORT"),
        (("--tls-ca", __file__), "--server HOST:PORT"),
        (("--nothing",), "No such option"),
    ],
)
def test_wrong_usage_is_told(command: Command, arguments: tuple[str, ...], said: str) -> None:
    done = command("models", "list", *arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_a_client_without_the_servers_part_lists_a_server() -> None:
    program = (
        "import sys\n"
        # Nothing of the light client needs these, the server does.
        "sys.modules.update(dict.fromkeys(('pydantic', 'pydantic_settings', 'prometheus_client'), None))\n"
        "from gradewire_cli import main\n"
        "for arguments in (['--help'], ['list', '--help'], ['list', '--server', '127.0.0.1:1'], ['list']):\n"
        "    sys.argv = ['gradewire', 'models', *arguments]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        "        print(ended.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["0", "0", "3", "2"], done
    assert "--server HOST:PORT" in done.stdout
    unreachable, not_installed = done.stderr.splitlines()
    assert "no gradewire server answers at 127.0.0.1:1" in unreachable
    assert "pip install 'gradewire[server]'" in not_installed
