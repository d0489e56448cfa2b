"""docs/operate/observe.md names exactly what the server exports, with base units."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from gradewire_gateway.observing import GatewayTelemetry
from gradewire_gateway.rewards import reward_counter
from gradewire_proto.tracing.factory import prometheus_counts
from gradewire_server.backends import open_handlers
from gradewire_server.encoders.prometheus import EncoderTelemetry
from gradewire_server.processes.supervisor_state import SupervisorTelemetry
from gradewire_server.settings.server import Settings
from gradewire_server.storage.cache import StorageTelemetry
from gradewire_server.storage.shared_cache import expose_table
from gradewire_server.storage.shared_table import MIN_BYTES, SharedTable

DOCUMENT = Path(__file__).parents[3] / "docs" / "operate" / "observe.md"


async def exported(tmp_path: Path, minilm: Path) -> dict[str, tuple[str, frozenset[str]]]:
    registry = CollectorRegistry()
    # It exports all that the embedded engine does and more; that nobody answers there does not matter.
    settings = Settings.load(
        disk_directory=tmp_path, model_repository=minilm, backend="triton", triton_url="127.0.0.1:1"
    )
    async with open_handlers(settings, registry):
        return families(registry)


def traced() -> CollectorRegistry:
    """What server and gateway register where they trace."""
    registry = CollectorRegistry()
    for prefix in ("gradewire", "gradewire_gateway"):
        prometheus_counts(registry, prefix)
    return registry


def shared() -> CollectorRegistry:
    """Return the metrics that a server process registers only if it shares memory with others."""
    registry = CollectorRegistry()
    expose_table(SharedTable.create(MIN_BYTES), StorageTelemetry(registry))
    return registry


def on_a_gpu() -> CollectorRegistry:
    """Return the metrics that an embedded engine registers only if it has a GPU."""
    registry = CollectorRegistry()
    EncoderTelemetry(registry).expose_gpu(busy_s=lambda: 0.0)
    return registry


def families(registry: CollectorRegistry) -> dict[str, tuple[str, frozenset[str]]]:
    """Kind and labels of gradewire's own metrics by name."""
    found = {}
    for collector in list(registry._collector_to_names):
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            name = f"{name}_info" if family.type == "info" else name
            if name.startswith("gradewire_"):
                of_samples = family.samples[0].labels if family.samples else getattr(family, "_labelnames", ())
                found[name] = (family.type, frozenset(getattr(collector, "_labelnames", of_samples)))
    return found


async def test_documentation_and_registry_name_the_same(tmp_path: Path, minilm: Path) -> None:
    rows = re.findall(r"^\| `(gradewire_\w+)` \| (\w+) \| ([^|]*)\|", DOCUMENT.read_text(), re.MULTILINE)
    documented = {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    gateway = GatewayTelemetry().registry
    reward_counter(gateway)
    supervisor = CollectorRegistry()
    SupervisorTelemetry(supervisor, lambda: 0)
    server = await exported(tmp_path, minilm) | families(supervisor)
    assert documented == server | families(gateway) | families(traced()) | families(shared()) | families(on_a_gpu())


async def test_names_carry_base_units(tmp_path: Path, minilm: Path) -> None:
    for name in await exported(tmp_path, minilm):
        assert not re.search(r"_(ms|millis|kb|mb|count)(_|$)", name), name
