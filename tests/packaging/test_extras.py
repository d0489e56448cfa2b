"""What an extra promises can be had with it; without it, whoever asks is told which one to install."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import distribution
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.packaging.installed import Installed

pytestmark = pytest.mark.timeout(600)  # the first test of a group waits for the wheel and all programs

STUB = (
    "from gradewire import Client, Scorer\n"
    "from gradewire.testing import StubTransport, echo_scores\n"
    "stub = StubTransport(lambda request: echo_scores(request, score=lambda _: 0.5))\n"
    "report = Client(transport=stub).score([{'references': ['a'], 'prediction': 'a'}])\n"
)
# For each extra the extras beside it and a program that does not come far without it.
PROGRAMS = {
    "server": ((), "Scorer.embedded()"),
    "triton": (("server",), "Scorer.embedded(backend='triton', triton_url='127.0.0.1:1')"),
    "parquet": ((), "assert report.to_arrow().num_rows == 1"),
    "agree": (
        (),
        "import gradewire_stats as them; them.scipy_stats(); them.one_blas_thread()",
    ),
}
# For each extra that a command needs and no program here: the extras beside it, and the command.
COMMANDS = {
    "judge": (("server",), ("models", "build", "qwen2.5-coder-1.5b-instruct")),
    "export": (("server",), ("models", "export", "nobody/nothing")),
    "load": ((), ("bench", "load")),
    "ray": (("server",), ("bulk", "answers.jsonl", "scores.jsonl")),
    "train": (("server",), ("models", "train", "sfve", "--recipe", "sfve-mini", "--out", "out")),
}
# For each extra that a training framework or a tracker needs: a program that does not come far without it. With it they
# run in tests_frameworks.
FRAMEWORKS = {
    "lightning": "import gradewire.integrations.training.lightning",
    "transformers": "import gradewire.integrations.training.hugging_face",
    "torchmetrics": "import gradewire.integrations.training.torch_metric",
    "tensorboard": "from gradewire.integrations.training.sinks import TensorBoardSink; TensorBoardSink('.')",
    "wandb": "from gradewire.integrations.training.sinks import WandbSink; WandbSink()",
    "mlflow": "from gradewire.integrations.training.sinks import MlflowSink; MlflowSink()",
}
# What each extra brings, by the names under which it is imported.
IMPORTS = {
    "server": "onnxruntime, onnx, tokenizers, lmdb, redis, pydantic_settings, prometheus_client, rapidfuzz, "
    "starlette, uvicorn, uvloop, grpc_health.v1, gradewire_gateway.serving",
    "judge": "onnxruntime, gguf, httptools, httpx2, h2, xllamacpp",
    "triton": "onnxruntime, tritonclient.grpc.aio",
    "agree": "jinja2, scipy.stats, threadpoolctl",
    "load": "prometheus_client, jinja2",
    "parquet": "pyarrow.parquet",
    "calibrate": "sklearn.ensemble, scipy.stats",
    "xlsx": "openpyxl",
    "openvino": "onnxruntime, openvino",
    "otel": "opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.grpc.trace_exporter, "
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
}
# Commands that a plain install lacks something for, and the extra.
WANTING = [
    (("score", "rows.jsonl"), "server"),
    (("models", "list"), "server"),
    (("triton", "status"), "server"),
    (("gateway", "--server", "127.0.0.1:1"), "server"),
    (("agree", "rows.jsonl"), "agree"),
    (("score", "rows.jsonl", "--group-by", "model"), "agree"),
    (("bench", "accuracy", "rows.jsonl"), "agree"),
    (("bench", "load"), "load"),
    (("compare", "rows.jsonl"), "agree"),
    (("leaderboard", "rows.jsonl"), "agree"),
    (("rank", "rows.jsonl"), "agree"),
    (("calibrate", "rows.jsonl"), "agree"),
    (("label", "rows.jsonl"), "agree"),
    (("score", "rows.parquet"), "parquet"),
    (("score", "rows.xlsx", "--from", "vlmevalkit"), "xlsx"),
]
# Commands that a plain install explains, and what it says.
HELP = [
    (("bench", "load"), ("--metrics-url", "--slo-s", "The knee is the highest rate")),
    (("agree",), ("gradewire agree answers.jsonl", "pip install 'gradewire[agree]'")),
    (("bench", "accuracy"), ("Models' accuracy", "pip install 'gradewire[agree]'")),
    (("compare",), ("gradewire compare base.jsonl new.jsonl", "pip install 'gradewire[agree]'")),
    (("leaderboard",), ("gradewire leaderboard", "pip install 'gradewire[agree]'")),
    (("rank",), ("gradewire rank", "pip install 'gradewire[agree]'")),
    (("calibrate",), ("gradewire calibrate", "pip install 'gradewire[agree]'")),
    (("serve",), ("gradewire serve --port 0", "pip install 'gradewire[server]'")),
    (("triton",), ("gradewire triton up", "pip install 'gradewire[server]'")),
    (("models", "build"), ("gradewire models build", "pip install 'gradewire[server]'")),
    (("bulk",), ("--keep-columns", "The command needs the extra ray")),
    (("gateway",), ("--host-name",)),
    (("prompt", "show"), ("METRIC FILE...",)),
]
ALL = {*PROGRAMS, *COMMANDS, *FRAMEWORKS, "calibrate", "gpu", "openvino", "otel", "xlsx"}
# Prints the modules of the client that cannot be imported.
IMPORT_ALL = """
import importlib, pkgutil, gradewire, gradewire_cli
for package in (gradewire, gradewire_cli):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except ImportError:
            print(module.name)
"""


def test_every_extra_is_looked_at(installed: Installed) -> None:
    assert set(installed.metadata.metadata.get_all("Provides-Extra") or ()) == ALL


Ran = Mapping[tuple[str, tuple[str, ...]], CompletedProcess[str]]


@pytest.fixture(scope="module")
def ran(installed: Installed) -> Ran:
    """Return the output of each program, by program and extras."""
    return installed.run_programs(
        [(STUB + program, extras) for extra, (beside, program) in PROGRAMS.items() for extras in (beside, (extra,))]
    )


@pytest.fixture(scope="module")
def frameworks(installed: Installed) -> Ran:
    """Return the output of each program without a framework, by program and extras."""
    return installed.run_programs([(program, ()) for program in FRAMEWORKS.values()])


@pytest.fixture(scope="module")
def imported(installed: Installed) -> Ran:
    """Import the names of each extra, with and without it, and return the output by program and extras."""
    return installed.run_programs(
        [(f"import {names}", extras) for extra, names in IMPORTS.items() for extras in ((), (extra,))]
    )


@pytest.mark.parametrize("extra", PROGRAMS)
def test_without_it_the_caller_is_told_what_to_install(ran: Ran, extra: str) -> None:
    beside, program = PROGRAMS[extra]
    done = ran[STUB + program, beside]
    assert done.returncode == 1
    assert re.search(
        rf"^(gradewire\.\S+|ModuleNotFoundError): .*pip install 'gradewire\[{extra}\]'$", done.stderr, re.MULTILINE
    ), done.stderr


@pytest.mark.parametrize("extra", PROGRAMS)
def test_with_it_the_same_program_runs(ran: Ran, extra: str) -> None:
    _, program = PROGRAMS[extra]
    done = ran[STUB + program, (extra,)]
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_without_a_framework_the_loop_is_told_what_to_install(frameworks: Ran, extra: str) -> None:
    done = frameworks[FRAMEWORKS[extra], ()]
    assert done.returncode == 1
    assert re.search(rf"^gradewire\.\S+: .*pip install 'gradewire\[{extra}\]'$", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize("extra", COMMANDS)
def test_without_it_the_command_says_what_to_install(installed: Installed, extra: str) -> None:
    beside, command = COMMANDS[extra]
    done = installed.run("gradewire", *command, extras=beside)
    assert done.returncode != 0
    assert f"pip install 'gradewire[{extra}]'" in done.stderr, done.stderr


@pytest.fixture(scope="module")
def wanting(installed: Installed) -> Mapping[tuple[str, ...], CompletedProcess[str]]:
    rows = '{"references": ["a"], "prediction": "a", "label": 1, "score": 0.5}\n'
    for name in ("rows.jsonl", "rows.parquet", "rows.xlsx"):
        Path(installed.scratch, name).write_text(rows, encoding="utf-8")
    return installed.run_commands([command for command, _ in WANTING])


@pytest.fixture(scope="module", params=["--help", "-h"])
def helped(
    installed: Installed, request: pytest.FixtureRequest
) -> tuple[str, Mapping[tuple[str, ...], CompletedProcess[str]]]:
    """Return the flag, and what a plain install prints with it, by command."""
    done = installed.run_commands([(*command, request.param) for command, _ in HELP])
    return request.param, done


@pytest.mark.parametrize(("command", "extra"), WANTING)
def test_commands_of_a_plain_install_say_what_to_install(
    wanting: Mapping[tuple[str, ...], CompletedProcess[str]], command: tuple[str, ...], extra: str
) -> None:
    done = wanting[command]
    assert done.returncode != 0
    assert f"pip install 'gradewire[{extra}]'" in done.stderr, done.stderr


@pytest.mark.parametrize(("command", "shown"), HELP)
def test_a_plain_install_shows_the_help_of_every_command(
    helped: tuple[str, Mapping[tuple[str, ...], CompletedProcess[str]]],
    command: tuple[str, ...],
    shown: tuple[str, ...],
) -> None:
    flag, found = helped
    done = found[*command, flag]
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert [each for each in shown if each not in text] == []


def test_the_extra_triton_has_the_bounds_of_its_packages(installed: Installed) -> None:
    """Otherwise an old pip tries out releases of everything else for many minutes before it changes protobuf."""
    own = [Requirement(line) for line in installed.metadata.requires or ()]
    of_extra = [each for each in own if each.marker is not None and each.marker.evaluate({"extra": "triton"})]
    theirs = [Requirement(line) for line in distribution("tritonclient").requires or ()]
    named = {canonicalize_name(each.name) for each in own}
    wanted = {bound for bound in upper_bounds(theirs) if bound[0] in named}
    assert wanted
    assert wanted <= upper_bounds(of_extra)


def upper_bounds(requirements: Iterable[Requirement]) -> set[tuple[str, Version]]:
    return {
        (canonicalize_name(each.name), Version(bound.version))
        for each in requirements
        for bound in each.specifier
        if bound.operator in {"<", "<="}
    }


def test_only_the_engine_and_figures_need_an_extra_to_be_imported(installed: Installed) -> None:
    done = installed.run("python", "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    missing = done.stdout.split()
    assert missing
    # Modules of the library that need an extra: the engine, OpenTelemetry, training and evaluation frameworks, rewards.
    library = ("_transports.embedded", "_opentelemetry", "integrations.evaluation.")
    library += ("rewards.verl_plugin", "rewards.verifiers")
    library += tuple(f"integrations.training.{name}" for name in ("lightning", "hugging_face", "torch_metric"))
    # Commands that compute statistics or draw pages, and what reads the engine's settings, fits and prompts.
    command = ("agree", "bench", "calibrate", "compare", "label.", "leaderboard", "load", "pages", "rank", "server_")
    command += ("bulk",)
    command += (
        "results.accuracy_tables",
        "scoring.choosers",
        "scoring.class_judging",
        "scoring.evaluator_labels",
        "scoring.labelled",
    )
    command += ("options.labelled", "results.error_classes", "results.interval_notes", "results.page_file", "score.by")
    allowed = (*(f"gradewire.{name}" for name in library), *(f"gradewire_cli.{name}" for name in command))
    assert all(name.startswith(allowed) for name in missing), [n for n in missing if not n.startswith(allowed)]
    done = installed.run("python", "-c", IMPORT_ALL, extras=("agree",))
    allowed = (
        "gradewire._",
        "gradewire.integrations.",
        "gradewire.rewards.",
        "gradewire_cli.bench.load",
        "gradewire_cli.server_",
    )
    missing = [name for name in done.stdout.split() if not name.startswith((*allowed, "gradewire_cli.bulk"))]
    assert missing == []


@pytest.mark.parametrize("extra", IMPORTS)
def test_it_brings_what_it_says(imported: Ran, extra: str) -> None:
    program = f"import {IMPORTS[extra]}"
    assert imported[program, (extra,)].returncode == 0, imported[program, (extra,)].stderr
    assert "ModuleNotFoundError" in imported[program, ()].stderr


def test_no_extra_of_what_a_user_runs_brings_torch(installed: Installed) -> None:
    heavy = {"torch", "transformers"}
    assert not installed.needed(*IMPORTS) & heavy
    said = "\n".join(installed.metadata.requires or ())
    assert set(re.findall(r"^(\w+).*extra == 'export'$", said, re.MULTILINE)) >= heavy
    assert set(re.findall(r"^([\w-]+).*extra == 'train'$", said, re.MULTILINE)) == {"gradewire-train"}
