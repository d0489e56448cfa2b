"""Encoders that were loaded once in a test process stay loaded: engines of later tests take what earlier ones opened.

Sessions and tokenizers do not change, and serve several engines at a time. Hundreds of tests open an engine of their
own on the same default encoder; loading it again takes a quarter of a second of a core each time.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from gradewire_models.repository import digest
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders import local

_KEPT_AT_MOST: Final = 9
"""The default encoder's and its grader's sessions, each for one thread and for all, the encoder's 8-bit graph, their
tokenizers, and two more."""

_T = TypeVar("_T")
_File = tuple[int, int, int, int]


def _identity(path: Path) -> _File:
    """Return a key that changes if the path leads to another file or the file has other bytes."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class _Kept:
    """A store of opened objects by key, which drops the least recently used first."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}
        self._opening = threading.Lock()

    def get(self, key: Hashable, open_: Callable[[], _T]) -> _T:
        with self._opening:
            found = self._kept.pop(key) if key in self._kept else open_()
            self._kept[key] = found
            for oldest in list(self._kept)[:-_KEPT_AT_MOST]:
                del self._kept[oldest]
            return found

    def has(self, opened: object) -> bool:
        """Return True if this object is kept."""
        return any(each is opened for each in self._kept.values())


def keep_opened(patch: pytest.MonkeyPatch) -> Callable[[object], bool]:
    """Has this process keep sessions, tokenizers and the digests of files, until `patch` is undone.

    Returns:
        Whether an object is kept.
    """
    kept = _Kept()
    digests: dict[_File, str] = {}
    open_session, open_tokenizer, sha256 = local._open, local.open_tokenizer, digest.file_sha256

    def session(model: BuiltModel, *, threads: int) -> Any:
        return kept.get((_identity(model.onnx_path), threads), lambda: open_session(model, threads=threads))

    def tokenizer(model: BuiltModel) -> Any:
        key = _identity(model.tokenizer_path), model.kind, model.max_tokens, model.prefix
        return kept.get(key, lambda: open_tokenizer(model))

    def file_sha256(path: Path) -> str:
        key = _identity(path)
        if key not in digests:
            digests[key] = sha256(path)
        return digests[key]

    patch.setattr(local, "_open", session)
    patch.setattr(local, "open_tokenizer", tokenizer)
    patch.setattr(digest, "file_sha256", file_sha256)
    return kept.has


def keep_graphs(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Has this process keep what `keep_opened` says, and 8-bit graphs as well.

    All engines take their 8-bit graphs from `folder`, whatever their stores are: writing one takes seconds. How far
    the vectors of two kept sessions are apart is computed once as well, for each engine on a store asks that.
    """
    is_kept = keep_opened(patch)
    errors: dict[Hashable, float] = {}
    cosine_error, provide_graph = local._cosine_error, local.provide_graph

    def error(exact: Any, rough: Any, tokenizer: Any, texts: Sequence[str]) -> float:
        sessions = [getattr(each, "_session", None) for each in (exact, rough)]
        if not all(map(is_kept, sessions)):
            return cosine_error(exact, rough, tokenizer, texts)
        # The key holds the sessions, so that no later one has their place in memory.
        key = (*sessions, tokenizer, *texts)
        if key not in errors:
            errors[key] = cosine_error(exact, rough, tokenizer, texts)
        return errors[key]

    patch.setattr(local, "_cosine_error", error)
    patch.setattr(local, "provide_graph", lambda model, _: provide_graph(model, folder))
