"""Rows and scorers of the tests of training loops."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.server_process import lasting_port

from gradewire.integrations import ValidationScorer

ScorerMaker = Callable[..., ValidationScorer]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Two right answers, one wrong one."""
    return [
        {"question": "What sleeps?", "references": ["cat"], "prediction": "cat"},
        {"question": "What barks?", "references": ["dog"], "prediction": "dog"},
        {"question": "What swims?", "references": ["carp"], "prediction": "cat"},
    ]


@pytest.fixture
def free_port() -> int:
    """Nobody listens there."""
    return lasting_port()


@pytest.fixture
def make_scorer(tmp_path: Path) -> Iterator[ScorerMaker]:
    """Makes scorers over one directory, one at a time, and closes the last one without waiting."""
    with contextlib.ExitStack() as stack:

        def make(address: Any, metrics: str | None = "exact_match", **settings: Any) -> ValidationScorer:
            scorer = ValidationScorer(address, metrics, **{"directory": tmp_path / "spool", **settings})
            stack.callback(scorer.close, 0.0)
            return scorer

        yield make
