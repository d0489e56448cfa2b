"""Judges of this machine: built by `gradewire models build`, each run by a worker process of its own."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Final

from typing_extensions import override

from gradewire_models.errors import ModelError
from gradewire_models.judges import BuiltJudge, CatalogJudge, Form, catalog_judges, list_judges, load_judge
from gradewire_models.processor import computes_int8
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.backend import JudgeBackend, JudgeUnavailableError
from gradewire_server.judges.local.judge import EmbeddedJudge, open_judge
from gradewire_server.judges.local.supervisor import LibraryMissingError, ModelRefusedError, WorkerLostError
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_log = logging.getLogger(__name__)
_NEEDS_GGUF: Final = "is built as int8 only, which is for x86 processors: it needs the form gguf"
_NEEDS_LLAMA: Final = "runs as gguf here, which llama.cpp computes, and that is not installed (or cannot be loaded)"
_INSTALL: Final = "pip install 'gradewire[judge]'"


class EmbeddedJudges(JudgeBackend):
    """The backend `embedded`.

    Args:
        config: Which judges, and how they are run.
        telemetry: Where their runs are counted.
    """

    def __init__(self, config: EmbeddedJudgeConfig, telemetry: JudgeTelemetry) -> None:
        self._config = config
        self._telemetry = telemetry

    @override
    def listed(self) -> Sequence[ModelStatus]:
        built = [self._built(judge) for judge in list_judges(self._config.repository)]
        names = {status.name for status in built}
        buildable = [judge for judge in catalog_judges().values() if judge.buildable]
        return built + [_missing(judge) for judge in buildable if judge.name not in names]

    @override
    async def open(self, name: str) -> EmbeddedJudge:
        try:
            judge = load_judge(self._config.repository, name)
        except ModelError as error:
            raise _unusable(name, error) from error
        form = self._form(judge)
        if judge.test_only:
            _log.warning("judge %r is for tests only: its verdicts are no better than chance", name)
        status = _status(judge, form, "loaded", self._config)
        try:
            return await open_judge(status, judge, form, self._config, self._telemetry)
        except WorkerLostError as error:
            # Nobody knows whether it would be lost again: no memory, perhaps.
            raise JudgeUnavailableError(Failure(Status.UNAVAILABLE, str(error), retry_after_s=5.0)) from error
        except LibraryMissingError as error:
            _log.warning("judge %r cannot be opened: %s", name, error)
            raise _no_form(judge, _NEEDS_LLAMA, f"get it by `{_INSTALL}`") from error
        except (ModelRefusedError, OSError, ValueError) as error:
            raise _unusable(name, error) from error

    @override
    async def close(self) -> None:
        pass  # nothing is held here

    def _built(self, judge: BuiltJudge) -> ModelStatus:
        try:
            return _status(judge, self._form(judge), "built", self._config)
        except JudgeUnavailableError as error:
            unusable = _status(judge, judge.forms[0], "broken", self._config)
            remedy = _INSTALL if _NEEDS_LLAMA in str(error) else judge.build_hint
            return replace(unusable, message=str(error), how_to_get=remedy)

    def _form(self, judge: BuiltJudge) -> Form:
        """Return which form of a judge runs here; raise JudgeUnavailableError."""
        wanted = self._config.form
        forms: list[Form] = ["int8", "gguf"] if wanted == "auto" else [wanted]
        there = [form for form in forms if form in judge.forms]
        for form in there:
            if computes_int8() if form == "int8" else has_llama():
                return form
        if "gguf" in there:
            raise _no_form(judge, _NEEDS_LLAMA, f"get it by `{_INSTALL}`")
        needed = "gguf" if there else forms[0]
        why = _NEEDS_GGUF if there else f"has no form {needed}"
        raise _no_form(judge, why, f"build it by `{judge.build_hint} --form {needed}`")


def has_llama() -> bool:
    """Return whether llama.cpp is installed; it is loaded in workers alone."""
    return find_spec("xllamacpp") is not None


def _no_form(judge: BuiltJudge, why: str, remedy: str) -> JudgeUnavailableError:
    return JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, f"judge {judge.name!r} {why}; {remedy}"))


def _unusable(name: str, error: Exception) -> JudgeUnavailableError:
    """Return the error for callers: without the cause's own words, which name directories of this machine."""
    _log.warning("judge %r cannot be opened: %s", name, error)
    commands = f"gradewire models verify {name} says why, gradewire models build {name} gets it anew"
    return JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, f"judge {name!r} cannot be opened here; {commands}"))


def _status(judge: BuiltJudge, form: Form, state: str, config: EmbeddedJudgeConfig) -> ModelStatus:
    return ModelStatus(
        name=judge.name,
        digest=judge.digests[form],
        state=state,
        max_tokens=min(judge.context_tokens, config.max_context_tokens),
        licence=judge.licence,
        precision=judge.numeric_classes[form],
        kind="judge",
        remarks=judge.remarks,
    )


def _missing(judge: CatalogJudge) -> ModelStatus:
    return ModelStatus(
        name=judge.name,
        digest="",
        state="missing",
        how_to_get=judge.build_hint,
        max_tokens=judge.context_tokens,
        licence=judge.licence,
        kind="judge",
        remarks=judge.remarks,
    )
