"""Makes the judge service that the settings ask for; backends that are not asked for are not even imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire_server.judges.library import NO_JUDGE
from gradewire_server.judges.service import JudgeService
from gradewire_server.judges.source import JudgeUnavailableError
from gradewire_server.judges.telemetry import JudgeTelemetry, RemoteTelemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prometheus_client import CollectorRegistry

    from gradewire_server.domain.ports import ModelStatus
    from gradewire_server.judges.source import Judge, JudgeSource
    from gradewire_server.judges.verdicts import VerdictCache
    from gradewire_server.settings.judge import JudgeConfig


class NoJudges:
    """Stands where the settings ask for none; see `JudgeSource`."""

    def listed(self) -> Sequence[ModelStatus]:
        """None."""
        return ()

    async def open(self, name: str) -> Judge:
        """Never opens one."""
        del name
        raise JudgeUnavailableError(NO_JUDGE)

    async def close(self) -> None:
        """Holds nothing."""


def open_judges(config: JudgeConfig, registry: CollectorRegistry, verdicts: VerdictCache) -> JudgeService:
    """The service; no judge is loaded yet.

    Args:
        config: See `JudgeConfig`.
        registry: Where metrics are registered; one engine per registry.
        verdicts: What is known already; of the engine that the judges belong to.

    Raises:
        ImportError: What the backend runs on is not installed.
        ValueError: A setting of the backend is none.
    """
    telemetry = JudgeTelemetry(registry)
    source, default = _source(config, telemetry)
    return JudgeService(source, config, verdicts, telemetry, default=config.default or default)


def _source(config: JudgeConfig, telemetry: JudgeTelemetry) -> tuple[JudgeSource, str]:
    """Where judges come from, and which one is meant where none is named."""
    # Imported here because each needs what the others do without.
    if config.backend == "embedded" and config.embedded is not None:
        from gradewire_models.judges import default_judge  # noqa: PLC0415 - see above
        from gradewire_server.judges.local.source import EmbeddedJudges  # noqa: PLC0415 - see above

        return EmbeddedJudges(config.embedded, telemetry), default_judge().name
    if config.backend == "openai" and config.remote is not None:
        from gradewire_server.judges.openai.source import OpenAIJudges  # noqa: PLC0415 - see above

        return OpenAIJudges(config.remote, RemoteTelemetry(telemetry)), config.remote.model
    if config.backend == "triton" and config.remote is not None:
        from gradewire_server.judges.triton.source import TritonJudges  # noqa: PLC0415 - see above

        return TritonJudges(config.remote, RemoteTelemetry(telemetry)), config.remote.model
    return NoJudges(), ""
