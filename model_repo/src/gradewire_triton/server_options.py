"""Options of a Triton server, and its command line."""

from dataclasses import dataclass
from pathlib import Path

from gradewire_models.repository._model_config_pb2 import ModelInstanceGroup
from gradewire_models.repository.config import CONFIG_FILE, read_config

_EXIT_TIMEOUT_S = 10
"""What requests in flight are given when it stops."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a Triton server.

    Attributes:
        repository: Triton model repository.
        models: Names of the models to load; empty loads every one that is in the repository at start and needs no GPU.
        host: Address to listen on. Triton authenticates nobody: keep it on the loopback, or behind a firewall.
        grpc_port: Port of gRPC; 0 takes a free one. `http_port` and `metrics_port` likewise.
        http_port: Port of HTTP.
        metrics_port: Port of Prometheus metrics.
        poll_s: Seconds between two checks for changes in the repository, whose models are all loaded then; 0 loads
            and unloads on request only.
    """

    repository: Path
    models: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    grpc_port: int = 0
    http_port: int = 0
    metrics_port: int = 0
    poll_s: int = 0

    def model_names(self) -> tuple[str, ...]:
        """Models that are loaded at start.

        Raises:
            ValueError: A config.pbtxt cannot be parsed.
            OSError: A config.pbtxt cannot be read.
        """
        found = sorted(self.repository.glob(f"[!.]*/{CONFIG_FILE}"))
        return self.models or tuple(path.parent.name for path in found if not _needs_gpu(path))


def _needs_gpu(config_path: Path) -> bool:
    config, _ = read_config(config_path)
    return any(group.kind == ModelInstanceGroup.KIND_GPU for group in config.instance_group)


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of one run: of gRPC, of HTTP and of the Prometheus metrics."""

    grpc: int
    http: int
    metrics: int


def command_line(options: ServerOptions, ports: Ports, *, backends: Path, shm_prefix: str) -> list[str]:
    """Arguments of ``tritonserver``; the names of its shared memory will begin with `shm_prefix`."""
    control = (
        ["--model-control-mode=poll", f"--repository-poll-secs={options.poll_s}"]
        if options.poll_s
        else ["--model-control-mode=explicit", *(f"--load-model={name}" for name in options.model_names())]
    )
    return [
        f"--model-repository={options.repository.absolute()}",
        f"--backend-directory={backends}",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
        # Completing a configuration starts every model once more, and ours are complete.
        "--disable-auto-complete-config",
        "--allow-gpu-metrics=false",
        f"--exit-timeout-secs={_EXIT_TIMEOUT_S}",
        f"--grpc-address={options.host}",
        f"--http-address={options.host}",
        f"--metrics-address={options.host}",
        f"--grpc-port={ports.grpc}",
        f"--http-port={ports.http}",
        f"--metrics-port={ports.metrics}",
        *control,
    ]
