"""A factory for the judge service, which imports only the chosen backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from gradewire_server.judges.backend import JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.service import NO_JUDGE, JudgeService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prometheus_client import CollectorRegistry

    from gradewire_server.domain.ports import ModelStatus
    from gradewire_server.judges.backend import Judge
    from gradewire_server.judges.verdict_cache import VerdictCache
    from gradewire_server.settings.judge import JudgeConfig


class NoJudges(JudgeBackend):
    """The backend for a server without a judge."""

    @override
    def listed(self) -> Sequence[ModelStatus]:
        return ()

    @override
    async def open(self, name: str) -> Judge:
        raise JudgeUnavailableError(NO_JUDGE)


def open_judges(config: JudgeConfig, registry: CollectorRegistry, verdicts: VerdictCache) -> JudgeService:
    """Return the service, without loading a judge.

    Raises:
        ImportError: A library of the backend is not installed.
        ValueError: One of the backend's settings is not valid.
    """
    telemetry = JudgeTelemetry(registry)
    backend, default = _backend(config, telemetry)
    return JudgeService(backend, config, verdicts, telemetry, default=config.default or default)


def _backend(config: JudgeConfig, telemetry: JudgeTelemetry) -> tuple[JudgeBackend, str]:
    # Each backend needs libraries that no other backend needs.
    if config.backend == "embedded" and config.embedded is not None:
        from gradewire_models.judges.catalog import default_judge  # noqa: PLC0415 - see above
        from gradewire_server.judges.local.judge import EmbeddedJudges  # noqa: PLC0415 - see above

        judges: JudgeBackend = EmbeddedJudges(config.embedded, telemetry)
        if config.host:
            from gradewire_server.judges.shared import SharedJudges  # noqa: PLC0415 - see above

            judges = SharedJudges(config.host, judges)
        return judges, default_judge().name
    if config.backend == "openai" and config.remote is not None:
        from gradewire_server.judges.remote.openai import OpenAIJudges  # noqa: PLC0415 - see above

        return OpenAIJudges(config.remote, telemetry), config.remote.model
    if config.backend == "decisions" and config.remote is not None:
        from gradewire_server.judges.remote.decisions import DecisionJudges  # noqa: PLC0415 - see above

        return DecisionJudges(config.remote, telemetry), config.remote.model
    if config.backend == "triton" and config.remote is not None:
        from gradewire_server.judges.remote.triton import TritonJudges  # noqa: PLC0415 - see above

        return TritonJudges(config.remote, telemetry), config.remote.model
    return NoJudges(), ""
