"""The wheel holds what the product needs and nothing else, and a plain install is a light client."""

from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import pytest
from tests.client.small_server import SmallServer
from tests.packaging.installed import ROOT, Installed, packages_of, unlike

pytestmark = pytest.mark.timeout(600)  # the first test waits for the wheel

PACKAGES = packages_of(ROOT).keys()
DATA = [
    *(f"{package}/py.typed" for package in PACKAGES),
    "gradewire_cli/pages/templates/*.html",
    "gradewire_cli/pages/templates/*.css",
    "gradewire_cli/pages/templates/*.js",
    "gradewire_models/catalog/catalog.toml",
    "gradewire_models/catalog/adapters/sfve-mini/*.safetensors",
    "gradewire_models/catalog/calibrations/*.json",
    "gradewire_models/judges/judges.toml",
    "gradewire_server/metrics/prompts/*.toml",
    "gradewire_server/metrics/values/vocabulary.toml",
    "gradewire_server/metrics/correctness/vocabulary.toml",
    "gradewire_server/metrics/text/yes_no.toml",
    "gradewire_gateway/static/index.html",
    "gradewire_triton/environment.lock",
]
# What `import gradewire` may load beside the standard library: the messages, and no gRPC before the first call.
LIGHT = {"gradewire", "gradewire_proto", "google"}


def test_it_holds_the_packages_as_they_stand_in_the_tree(wheel: Path) -> None:
    ours = ("server", "gateway", "models", "triton", "proto", "stats", "cli")
    assert {"gradewire", *(f"gradewire_{name}" for name in ours)} == PACKAGES
    assert unlike(wheel, ROOT) == []


def test_its_source_archive_holds_no_installed_package_and_no_secret(wheel: Path) -> None:
    # Hatchling reads the ignore file of the root only, so all rules have to stand there.
    (source,) = (folder for folder in wheel.parent.glob("gradewire-*") if folder.is_dir())
    assert (source / "client/typescript/package.json").is_file()
    for name in ("client/typescript/node_modules", "client/typescript/dist", "deploy/secrets"):
        assert not (source / name).exists(), name


@pytest.mark.parametrize("pattern", DATA)
def test_it_holds_the_data(wheel: Path, pattern: str) -> None:
    with ZipFile(wheel) as archive:
        assert any(fnmatch(name, pattern) for name in archive.namelist())


def test_it_brings_its_licence_and_the_page_of_the_index(installed: Installed) -> None:
    said = installed.metadata
    assert said.metadata["License-Expression"] == "Apache-2.0"
    assert any(path.name == "LICENSE" for path in said.files or ())
    assert (ROOT / "README.md").read_text(encoding="utf-8").strip() in (said.read_text("METADATA") or "")


def test_importing_it_loads_the_messages_and_nothing_heavy(installed: Installed) -> None:
    program = (
        "import sys; before = set(sys.modules); import gradewire; loaded = {m.partition('.')[0] for m in "
        "set(sys.modules) - before}; print(gradewire.__file__, *sorted(loaded - sys.stdlib_module_names))"
    )
    done = installed.run("python", "-c", program)
    assert done.returncode == 0, done.stderr
    place, *loaded = done.stdout.split()
    assert Path(place).is_relative_to(installed.site_packages)
    assert set(loaded) == LIGHT


def test_a_plain_install_has_no_package_of_the_server(installed: Installed) -> None:
    light = installed.needed()
    assert {"grpcio", "protobuf", "click", "rich"} <= light
    assert not light & {
        "numpy",
        "platformdirs",
        "onnxruntime",
        "scipy",
        "pydantic",
        "tokenizers",
        "lmdb",
        "redis",
        "onnx",
        "prometheus-client",
    }
    found = installed.run("python", "-c", "import onnxruntime")
    assert "No module named 'onnxruntime'" in found.stderr


def test_a_plain_install_scores_through_a_transport(installed: Installed) -> None:
    program = (
        "from gradewire import Client; from gradewire.testing import StubTransport, echo_scores; "
        "client = Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 0.5))); "
        "print(client.score([{'references': ['a'], 'prediction': 'a'}])[0].scores['smile'].score)"
    )
    done = installed.run("python", "-c", program)
    assert (done.stdout, done.returncode) == ("0.5\n", 0), done.stderr


COMMANDS = [(), ("score",), ("prepare",), ("agree",), ("serve",), ("bench",), ("calibrate",), ("prompt",)]


@pytest.fixture(scope="module")
def helped(installed: Installed) -> Mapping[tuple[str, ...], CompletedProcess[str]]:
    return installed.run_commands([(*command, "--help") for command in COMMANDS])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_explains_itself(
    helped: Mapping[tuple[str, ...], CompletedProcess[str]], command: tuple[str, ...]
) -> None:
    done = helped[*command, "--help"]
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: gradewire")
    # The flags of serve are the server's settings; figures are drawn by numpy.
    if extra := {"serve": "server", "agree": "agree", "calibrate": "agree"}.get("".join(command)):
        assert f"pip install 'gradewire[{extra}]'" in " ".join(done.stdout.split())


def test_a_plain_install_scores_a_file_on_a_server(installed: Installed, small_server: SmallServer) -> None:
    rows = Path(installed.scratch, "plain.jsonl")
    rows.write_text('{"references": ["a"], "prediction": "a"}\n' * 3, encoding="utf-8")
    done = installed.run("gradewire", "score", str(rows), "--server", small_server.address)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"score": 1.0') == 3
    done = installed.run("gradewire", "prepare", str(rows), "--server", small_server.address)
    assert done.returncode == 0, done.stderr
    done = installed.run("gradewire", "models", "list", "--server", small_server.address)
    assert done.returncode == 0, done.stderr


WITHOUT = """
import sys
for name in ("click", "rich", "platformdirs", "numpy"):
    sys.modules[name] = None
"""


def test_the_client_needs_nothing_of_the_command(installed: Installed, small_server: SmallServer) -> None:
    program = WITHOUT + (
        "from gradewire import Client\n"
        f"with Client({small_server.address!r}) as client:\n"
        "    report = client.score([{'references': ['a'], 'prediction': 'a'}])\n"
        "    print(report[0].scores['smile'].score, client.submit([]).result(30), len(client.models().models))\n"
    )
    done = installed.run("python", "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1.0 ")


def test_the_command_without_its_packages_says_what_to_install(installed: Installed) -> None:
    done = installed.run(
        "python", "-c", "import sys; sys.modules['click'] = None; from gradewire_cli import main; main()"
    )
    assert (done.returncode, done.stderr) == (
        2,
        "Error: click is not installed. Run: pip install click\n",
    )
