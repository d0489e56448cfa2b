"""The record of a run: its inputs, versions, metric lines, costs, times and machine."""

import hashlib
import importlib.metadata
import os
import platform
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from gradewire_proto.v1 import scoring_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDigest:
    """A file that a run read or wrote.

    Attributes:
        path: As it was named.
        bytes: Its size; None where it could be read only once (standard input, a pipe) or is not on this machine.
        sha256: 64 hex digits over its bytes; "" where `bytes` is None.
    """

    path: str
    bytes: int | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of what took part.

    Attributes:
        gradewire: Of the client that ran the command.
        server: Of the engine or server that scored; "" where nobody asked.
        protocol: Package of the wire format, for instance gradewire.v1.
        python: Of the client.
    """

    gradewire: str
    server: str = ""
    protocol: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """What became of the rows, those of earlier runs that were kept included.

    Attributes:
        rows: In the output.
        scored_now: Of these, scored by this run; None: all.
        failed: Rows with at least one result that is a failure; an empty prediction is none.
        unscored: Rows that lack at least one score.
        statuses: Rows by label of the metric and status.
        warnings: Rows by label of the metric and warning.
    """

    rows: int
    scored_now: int | None = None
    failed: int = 0
    unscored: int = 0
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the judges of this run took.

    Attributes:
        read_tokens: Tokens that they read.
        written_tokens: Tokens that they wrote.
        unknown_rows: Rows whose tokens the judge's server does not tell.
        read_price: Of a million tokens that are read, in the user's currency; None: not given.
        written_price: Of a million tokens that are written; None: not given.
        price: Of the known tokens together; None where a price was not given.
    """

    read_tokens: int
    written_tokens: int
    unknown_rows: int = 0
    read_price: float | None = None
    written_price: float | None = None
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When a run was done and what it took.

    Attributes:
        began_at: UTC, ISO 8601, to the second.
        wall_s: From there to the end, seconds.
        cpu_s: CPU seconds of the command's process and of those of its children that have ended; a server is not in it.
    """

    began_at: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where the command ran; a server may be elsewhere.

    Attributes:
        processor: Its name, as the system has it.
        cores: Logical ones that the process may use.
        memory_bytes: Of the machine; None where the system does not say.
        system: Kernel and architecture.
        load_before: Mean number of runnable processes in the minute before the run; None where the system does not say.
        load_after: The same at its end.
    """

    processor: str
    cores: int
    memory_bytes: int | None = None
    system: str = ""
    load_before: float | None = None
    load_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """What a run was made from, with and by.

    Attributes:
        command: Of gradewire, for instance "score" or "bench load".
        versions: Of client, server and protocol.
        place: Where the scoring was done, for people.
        metrics: The line that reproduces each metric, by label: with all parameters, and digests of models and prompts.
        models: What those lines name with a digest, as NAME@DIGEST: encoders, graders, judges.
        prompts: The same of prompts.
        inputs: Files that were read.
        output: The output as the run left it; None where it is no single file on this machine, or of a command whose
            outputs are not compared.
        parameters: Further options that change what comes out, by name; values as JSON has them.
        counts: Of rows.
        cost: What judges took; None where none was asked, or none that is paid for.
        times: When and how long.
        machine: Where the command ran.
        reproduce: A command line that gives the same again, without secrets; "" where there is none.
        notes: What people should know of the input, in sentences.
        results: Figures of the command itself; values as JSON has them.
        others: Fields of a file that a newer gradewire wrote, kept as they are.
    """

    command: str
    versions: Versions
    counts: RunCounts
    times: RunTimes
    machine: Machine
    place: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    models: Sequence[str] = ()
    prompts: Sequence[str] = ()
    inputs: Sequence[InputDigest] = ()
    output: InputDigest | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost | None = None
    reproduce: str = ""
    notes: Sequence[str] = ()
    results: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)


_CPU_INFO = Path("/proc/cpuinfo")


def _load() -> float | None:
    # Windows has none.
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _cpu_s() -> float:
    return sum(os.times()[:4])


@dataclass(frozen=True, slots=True)
class RunClock:
    """Made where a run begins."""

    _began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _began_s: float = field(default_factory=time.monotonic)
    _cpu_s: float = field(default_factory=_cpu_s)
    _load: float | None = field(default_factory=_load)

    def times(self) -> RunTimes:
        """What the run took until now."""
        return RunTimes(
            began_at=self._began_at.isoformat(timespec="seconds"),
            wall_s=time.monotonic() - self._began_s,
            cpu_s=_cpu_s() - self._cpu_s,
        )

    def machine(self) -> Machine:
        """This machine, with its load before the run and now."""
        return Machine(
            processor=_processor(),
            cores=usable_cores(),
            memory_bytes=_memory_bytes(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            load_before=self._load,
            load_after=_load(),
        )


def _processor() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int | None:
    with suppress(ValueError, OSError, AttributeError):  # names that this system does not have
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


_PROMPT: Final = "prompt"
_REFERENCE_SET: Final = "reference_set"


def manifest_path(output: Path) -> Path:
    """Where the manifest of an output stands: OUTPUT.manifest.json beside it, or manifest.json in a folder of parts."""
    if output.is_dir():
        return output / "manifest.json"
    return output.with_name(f"{output.name}.manifest.json")


def file_digest(path: str | Path) -> InputDigest:
    """Size and SHA-256 of a file; what is no regular file on this machine is only named, for it may be read once.

    Raises:
        OSError: It is there and cannot be read.
    """
    file = Path(path)
    if not file.exists() or not stat.S_ISREG(file.stat().st_mode):
        return InputDigest(path=str(path))
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return InputDigest(path=str(path), bytes=stream.tell(), sha256=digest.hexdigest())


def versions(server: str = "") -> Versions:
    """Versions of this client, of a server that it has asked, and of the protocol between them."""
    return Versions(
        gradewire=importlib.metadata.version("gradewire"),
        server=server,
        protocol=scoring_pb2.DESCRIPTOR.package,
        python=platform.python_version(),
    )


def pinned_names(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Models and prompts that metric lines name with a digest, as NAME@DIGEST, each once and in their order."""
    models: dict[str, None] = {}
    prompts: dict[str, None] = {}
    for line in lines:
        for pair in line.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if "@" in value and name != _REFERENCE_SET:
                (prompts if name == _PROMPT else models)[unquote(value)] = None
    return list(models), list(prompts)
