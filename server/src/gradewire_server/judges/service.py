"""The judge service, which opens judges at first use."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status, quoted
from gradewire_server.domain.judge import Choose, JudgeNeed
from gradewire_server.domain.ports import REPLACED, JudgeReply, Judges, ModelIndex, ModelStatus
from gradewire_server.judges.backend import Judge, JudgeBackend, JudgeUnavailableError, UniformJudges, failed_reply
from gradewire_server.judges.images import ImageChecks
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.judges.wrappers import TIMED_OUT, QueueLimit, wrapped
from gradewire_server.resilience import SingleFlight
from gradewire_server.settings.judge import JudgeConfig

_log = logging.getLogger(__name__)

USABLE: Final = frozenset({"loaded", "built"})
_LIST_LIFETIME_S: Final = 2.0
_RETRY_OPENING_AFTER_S: Final = 5.0
_REOPEN_DEFAULT_S: Final = 30.0
"""Seconds between the server's own attempts to open the default judge, so that health can recover without a caller."""
NO_JUDGE: Final = Failure(
    Status.MODEL_UNAVAILABLE,
    "this server has no judge. Set judge_backend to embedded, triton, openai or decisions (docs/reference/settings.md)",
)
_DEFECT: Final = Failure(Status.MODEL_UNAVAILABLE, "the judge cannot be opened. See the server's log")


class JudgeLibrary(ModelIndex):
    """A process's judges. `close` also closes `backend`. For one event loop only."""

    def __init__(
        self,
        backend: JudgeBackend,
        *,
        default: str,
        wrap: Callable[[Judge], Judge],
    ) -> None:
        self.default = default
        self.loaded: dict[str, Judge] = {}
        self._backend = backend
        self._wrap = wrap
        self._opening: SingleFlight[str, Judge | Failure] = SingleFlight()
        self._failed: dict[str, tuple[float, Failure]] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._logged: tuple[str, Failure] | None = None
        self._known: tuple[ModelStatus, ...] = ()
        self._known_until_s = -1.0

    async def get(self, reference: str) -> Judge | Failure:
        """Return the judge for NAME, NAME@DIGEST or "" (the default judge); return REPLACED if the digest differs."""
        name, _, digest = reference.partition("@")
        name = name or self.default
        judge = self.loaded.get(name) or await self._opened(name)
        if digest and not isinstance(judge, Failure) and judge.status.digest != digest:
            return REPLACED
        return judge

    def open_soon(self, name: str) -> None:
        """Start opening a judge, unless it is open, being opened or unavailable."""
        if name in self.loaded or name in self._opening:
            return
        status = self.status(name)
        if isinstance(status, Failure):
            self._log_once(name, status)
            self._look_again_later(name)
        else:
            self._opening.begin(name, partial(self._open, name), context=contextvars.Context())

    def loaded_one(self, reference: str) -> Judge | None:
        """Return the judge for NAME, NAME@DIGEST or "" if this judge is loaded; otherwise return None."""
        name, _, digest = reference.partition("@")
        judge = self.loaded.get(name or self.default)
        return None if judge is None or (digest and judge.status.digest != digest) else judge

    @override
    def statuses(self) -> list[ModelStatus]:
        found = {status.name: status for status in self._listed()}
        found |= {name: judge.status for name, judge in self.loaded.items()}
        return [replace(status, is_default=status.name == self.default) for status in found.values()]

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        name = name or self.default
        judge = self.loaded.get(name)
        if judge is not None:
            return replace(judge.status, is_default=name == self.default)
        known = {status.name: status for status in self.statuses()}
        if not known:
            return NO_JUDGE
        if name in known:
            status = known[name]
            return status if status.state in USABLE else Failure(Status.MODEL_UNAVAILABLE, status.unusable_message)
        wanted = f"unknown judge {quoted(name)}" if name else "the server has no default judge"
        return Failure(Status.MODEL_UNAVAILABLE, f"{wanted}. Known judges: {', '.join(known)}")

    def trouble(self, name: str) -> str:
        """Return the reason why a judge cannot answer now, or "" if the judge can answer or be opened."""
        judge = self.loaded.get(name)
        if judge is not None:
            return judge.trouble()
        failed = self._failed.get(name)
        if failed is not None:
            return failed[1].message
        status = self.status(name)
        return status.message if isinstance(status, Failure) else ""

    async def close(self) -> None:
        """Stop opening judges, close all open judges, then close the backend."""
        if self._looking is not None:
            self._looking.cancel()
        await self._opening.cancel()
        await asyncio.gather(*(judge.close() for judge in self.loaded.values()), return_exceptions=True)
        self.loaded.clear()
        await self._backend.close()

    async def _opened(self, name: str) -> Judge | Failure:
        if name not in self._opening:
            failed = self._failed.get(name)
            if failed is not None and time.monotonic() < failed[0]:
                return failed[1]
            status = self.status(name)
            if isinstance(status, Failure):
                return status  # remember nothing, because callers may invent names
        # Use a separate context, because later logs of a judge's tasks are not about the request that opened the judge.
        return await self._opening.result(name, partial(self._open, name), context=contextvars.Context())

    async def _open(self, name: str) -> Judge | Failure:
        started_s = time.monotonic()
        try:
            judge = self._wrap(await self._backend.open(name))
        except JudgeUnavailableError as error:
            failure = error.failure
            self._log_once(name, failure)
        except Exception:  # noqa: BLE001 - a backend may raise any error for a file or a server
            failure = _DEFECT
            _log.exception("cannot open judge %s", name)
        else:
            _log.info("judge %s is ready after %.1f s", name, time.monotonic() - started_s)
            self.loaded[name] = judge
            self._failed.pop(name, None)
            self._logged = None
            return judge
        self._failed[name] = (time.monotonic() + _RETRY_OPENING_AFTER_S, failure)
        self._known_until_s = -1.0
        if name == self.default:
            self._look_again_later(name)
        return failure

    def _log_once(self, name: str, failure: Failure) -> None:
        if self._logged != (name, failure):
            self._logged = (name, failure)
            _log.warning("judge %s cannot be used: %s", name, failure.message)

    def _look_again_later(self, name: str) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.get_running_loop().call_later(_REOPEN_DEFAULT_S, self.open_soon, name)

    def _listed(self) -> Sequence[ModelStatus]:
        if time.monotonic() >= self._known_until_s:
            self._known = tuple(self._backend.listed())
            self._known_until_s = time.monotonic() + _LIST_LIFETIME_S
        return self._known


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """The default judge's state.

    Attributes:
        trouble: The reason why the judge cannot answer; "" for a judge that works, and for an unusable judge that the
            settings do not require.
    """

    configured: bool
    ready: bool
    trouble: str = ""


class JudgeService(UniformJudges, ModelIndex):
    """A server's judges. `close` also closes `backend`. For one event loop only."""

    def __init__(
        self,
        backend: JudgeBackend,
        config: JudgeConfig,
        verdicts: VerdictCache,
        telemetry: JudgeTelemetry,
        *,
        default: str,
    ) -> None:
        self._config = config
        self._verdicts = verdicts
        self._telemetry = telemetry
        self._limit = QueueLimit(config.max_queue_items)
        self._images = ImageChecks(config.images)
        self._library = JudgeLibrary(
            backend, default=default, wrap=lambda judge: wrapped(judge, self._images, self._limit, verdicts)
        )
        self._entering = 0
        self._closed = False
        telemetry.expose(
            queued=lambda: self._limit.waiting + self._entering, up=lambda: 1.0 if self.health().ready else 0.0
        )

    def load_soon(self) -> None:
        """Start loading the default judge, so that calls wait for this judge. `health` reports the outcome."""
        self._library.open_soon(self._library.default)

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        judge = self._library.loaded_one(need.model) or await self._opened(need.model, deadline_s)
        if isinstance(judge, Failure):
            reply = failed_reply(judge)
        else:
            reply = await judge.answer(need, deadline_s=deadline_s)
        if isinstance(reply.answer, Failure):
            self._telemetry.failed(reply.answer.status)
        else:
            self._telemetry.answered("choose" if isinstance(need, Choose) else "generate", reply.source, reply.timing)
        return reply

    def within(self, namespace: str) -> Judges:
        """Return the judges for a tenant's namespace. Namespaces never share stored or pending verdicts."""
        return _NamespaceJudges(self, namespace)

    @override
    def statuses(self) -> list[ModelStatus]:
        return self._library.statuses()

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        return self._library.status(name)

    def health(self) -> JudgeHealth:
        """Return the default judge's state."""
        known = self._library.statuses()
        if not known:
            return JudgeHealth(configured=False, ready=False)
        trouble = self._library.trouble(self._library.default)
        default = next((status for status in known if status.is_default), None)
        there = default is not None and default.state in USABLE
        wanted = there or self._config.preload or bool(self._config.default)
        return JudgeHealth(configured=True, ready=not trouble, trouble=trouble if wanted else "")

    async def close(self) -> None:
        """Fail queued needs, close judges and backend, and write the verdicts. You may call this twice."""
        if self._closed:
            return
        self._closed = True
        self._limit.close()
        await self._library.close()
        self._images.close()
        await self._verdicts.flush()

    async def _opened(self, reference: str, deadline_s: float | None) -> Judge | Failure:
        refusal = self._limit.refusal(self._entering)
        if refusal is not None:
            return refusal
        self._entering += 1
        try:
            async with asyncio.timeout_at(deadline_s):  # the loop uses the same clock
                return await self._library.get(reference)
        except TimeoutError:
            return TIMED_OUT
        finally:
            self._entering -= 1


class _NamespaceJudges(UniformJudges):
    def __init__(self, service: JudgeService, namespace: str) -> None:
        self._service = service
        self._namespace = namespace

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        return await self._service.answer(replace(need, namespace=self._namespace), deadline_s=deadline_s)
