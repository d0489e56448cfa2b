"""Request bodies, read whole or line by line, and budgets that callers share."""

import asyncio
from collections.abc import AsyncGenerator, Hashable
from http import HTTPStatus
from typing import Any, Self

from starlette.datastructures import Headers
from starlette.types import Receive

from gradewire_gateway.problems import Problem, ProblemError, too_busy
from gradewire_gateway.settings import Bounds


class Budget:
    """A maximum number of requests, connections or bytes that callers may hold at the same time.

    A caller's part may not be larger than the part that then remains free. For example, a single caller may hold half
    of the budget, and two callers may hold a third each.

    Args:
        most: The maximum.
        refusal: The error message if too little of the budget is left.
    """

    def __init__(self, most: int, refusal: str) -> None:
        self._most = most
        self._refusal = refusal
        self._by_caller: dict[Hashable, int] = {}
        self.held = 0

    def change(self, caller: Hashable, by: int) -> None:
        """Add `by` to the amount that a caller holds; raise ProblemError if this would exceed the caller's share."""
        own = self._by_caller.get(caller, 0) + by
        if by > 0 and own + self.held + by > self._most + 1:  # without the 1, the last unit could never be held
            raise too_busy(f"{self._refusal}; try again")
        self.held += by
        if own:
            self._by_caller[caller] = own
        else:
            self._by_caller.pop(caller, None)


class Share:
    """The part of a budget that a request or connection holds. A `with` statement frees this part at the end."""

    def __init__(self, budget: Budget, caller: Hashable) -> None:
        self._budget = budget
        self.caller = caller
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.hold(0)

    def hold(self, count: int) -> None:
        """Change the held amount to `count`; raise the same errors as `Budget.change`."""
        self._budget.change(self.caller, count - self._held)
        self._held = count


class DisconnectedError(Exception):
    """Raised when the caller has disconnected."""


class Body:
    """A request's body, the only reader of ASGI's `receive`. A `with` statement frees the body's memory at its end."""

    def __init__(self, receive: Receive, headers: Headers, bounds: Bounds, share: Share) -> None:
        self._receive = receive
        self._headers = headers
        self._bounds = bounds
        self._share = share
        self.caller = share.caller
        self._whole = False
        self.size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._share.hold(0)

    def check_type(self, *allowed: str) -> None:
        """Raise ProblemError if the content type is not allowed. The message names the first allowed type."""
        given = self._headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = self._headers.get("content-encoding", "identity").strip().lower()
        if given in allowed and encoding == "identity":
            return
        detail = f"send the body with Content-Type: {allowed[0]}, in UTF-8 and not compressed"
        raise ProblemError(Problem(415, "invalid_argument", detail, headers={"accept": ", ".join(allowed)}))

    async def read(self) -> bytearray:
        """Return the whole body, without copying it.

        Raises:
            ProblemError: The body is too large or arrives too slowly.
            DisconnectedError: The caller has disconnected.
        """
        declared = self._headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._bounds.max_body_bytes:
            raise self._too_large("the body")
        data = bytearray()
        try:
            async with asyncio.timeout(self._bounds.body_s):
                async for chunk in self._chunks():
                    self._hold(len(data) + len(chunk), "the body")
                    data += chunk
        except TimeoutError:
            raise self._too_slow("the body") from None
        return data

    async def lines(self) -> AsyncGenerator[bytearray]:
        """Yield the non-blank lines without their line ends. Keep only one line in memory at a time.

        Raises:
            ProblemError: A line is too large or arrives too slowly. The time between lines is not limited.
            DisconnectedError: The caller has disconnected.
        """
        begun = bytearray()
        ends_s: float | None = None
        chunks = self._chunks()
        while True:
            try:
                async with asyncio.timeout_at(ends_s):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise self._too_slow("a line") from None
            if chunk is None:
                break
            head, *others = chunk.split(b"\n")
            begun += head
            self._hold(len(begun), "a line")
            if others:
                if begun.strip():
                    yield begun
                *whole, last = others
                for line in filter(bytes.strip, whole):  # skips thousands of blank lines in one step
                    yield bytearray(line)
                begun = bytearray(last)
            self._hold(len(begun), "a line")
            if others or ends_s is None:  # a line starts in this chunk
                ends_s = asyncio.get_running_loop().time() + self._bounds.body_s
            if not begun:
                ends_s = None
        if begun.strip():
            yield begun

    async def disconnected(self) -> None:
        """Wait until the caller disconnects, and discard everything that arrives until then."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while not self._whole:
            message: Any = await self._receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            self._whole = not message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            self.size_bytes += len(chunk)
            yield chunk

    def _hold(self, size_bytes: int, what: str) -> None:
        if size_bytes > self._bounds.max_body_bytes:
            raise self._too_large(what)
        self._share.hold(size_bytes)

    def _too_large(self, what: str) -> ProblemError:
        detail = f"{what} is larger than {self._bounds.max_body_bytes} bytes; send fewer items at a time"
        return ProblemError(Problem(413, "resource_exhausted", detail, headers={"connection": "close"}))

    def _too_slow(self, what: str) -> ProblemError:
        detail = f"{what} did not arrive within {self._bounds.body_s:g} s"
        headers = {"connection": "close"}
        return ProblemError(Problem(HTTPStatus.REQUEST_TIMEOUT, "deadline_exceeded", detail, headers=headers))
