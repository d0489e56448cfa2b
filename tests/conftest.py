"""Fixtures that every part of the tests shares."""

import gc
import logging
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.support.debian.chromium import headless_chromium
from tests.support.examples import FIXED, USUAL
from tests.support.figures import figure, pytest_addoption, pytest_terminal_summary  # noqa: F401 - hooks, a fixture
from tests.support.models.kept_graphs import keep_graphs
from tests.support.processes import (  # noqa: F401 - hooks
    hear_ctrl_c,
    pytest_runtest_call,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_sessionfinish,
    pytest_timeout_set_timer,
)
from tests.support.servers.triton import TritonServer

from gradewire_models.repository.built import default_repository, load_built

# The oracle and a few tests load ONNX Runtime without gradewire; see gradewire_models.runtime.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# Whoever runs the tests may trace other programs; what is to be traced here says so itself.
for _name in [name for name in os.environ if name.startswith("OTEL_")]:
    del os.environ[_name]
# As `import gradewire` does, before tests that fork import gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

hear_ctrl_c()


def _is_not_of_a_closed_loop(record: logging.LogRecord) -> bool:
    """gRPC hands events of an earlier test's loop to this test's loop, which logs that the earlier one is closed."""
    is_of_grpc = "PollerCompletionQueue" in record.getMessage()
    return not (is_of_grpc and record.exc_info and str(record.exc_info[1]) == "Event loop is closed")


logging.getLogger("asyncio").addFilter(_is_not_of_a_closed_loop)

# How long an example takes says nothing on a machine that does other things as well. What CI draws is the same every
# time; `make test-search` draws afresh, and more.
hypothesis.settings.register_profile("fixed", deadline=None, max_examples=FIXED, derandomize=True, database=None)
hypothesis.settings.register_profile(
    "search", deadline=None, max_examples=10 * USUAL, derandomize=False, print_blob=True
)
hypothesis.settings.load_profile("fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collects without Python's garbage collector: what is collected stays, and is looked through again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


class _Collector:
    """A `gc` for servers in the tests' process that thaws nothing, so that frozen objects stay frozen.

    A server that ends thaws all, the tests as well, and from then on each collection looks through them for a second.
    """

    collect = staticmethod(gc.collect)
    freeze = staticmethod(gc.freeze)
    get_threshold = staticmethod(gc.get_threshold)
    set_threshold = staticmethod(gc.set_threshold)

    @staticmethod
    def unfreeze() -> None:
        """Leave all objects as they are."""


@pytest.fixture(scope="session", autouse=True)
def _frozen_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if memory := sys.modules.get("gradewire_server.memory"):
            patch.setattr(memory, "gc", _Collector)
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # The folder above that of a worker belongs to all workers of the run.
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        keep_graphs(patch, folder / "window-graphs")
        yield


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repository of the default encoder and its grader, which `make test` builds; what else there is stays out."""
    repository = tmp_path_factory.mktemp("repository") / "models"
    repository.mkdir()
    for name in ("all-MiniLM-L6-v2", "grader-mini"):
        built = load_built(default_repository(), name).directory
        (repository / built.name).symlink_to(built, target_is_directory=True)
    return repository


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium; each module starts one, for its event loop would be in the way of asynchronous tests."""
    chromium = headless_chromium()
    with sync_playwright() as playwright:
        # No sandbox: containers run tests as root, and the pages are our own.
        browser = playwright.chromium.launch(
            executable_path=chromium.program, env=dict(chromium.environment), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[TritonServer]:
    """The real Triton server over the default encoder, shared by all tests that only talk to it."""
    with TritonServer(tmp_path_factory.mktemp("triton"), minilm, models=("all-MiniLM-L6-v2", "grader-mini")) as server:
        yield server
