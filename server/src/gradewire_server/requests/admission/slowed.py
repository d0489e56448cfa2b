"""Room for messages of streams that wait for their tenant's quota, so that slow tenants take none from others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gradewire_server.requests.admission.permits import Permits

_SHARE: Final = 4
"""One tenant holds a quarter of it, at the most, or one message."""


class SlowedMessages:
    """Messages that were received and wait for a quota. Lives on one event loop.

    Args:
        limit_bytes: Of those of all tenants together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._all = Permits(limit_bytes, "bytes of messages that wait for quotas")
        self._share_bytes = max(1, limit_bytes // _SHARE)
        self._by_tenant: dict[str, Permits] = {}

    @property
    def taken(self) -> int:
        """Bytes that wait now."""
        return self._all.taken

    @contextmanager
    def hold(self, tenant: str, size_bytes: int) -> Iterator[None]:
        """Holds a message for the block; raises OverloadedError where there is no room for it.

        Args:
            tenant: Whose quota it waits for.
            size_bytes: Of the message.
        """
        own = self._by_tenant.get(tenant)
        if own is None:
            own = self._by_tenant[tenant] = Permits(self._share_bytes, "bytes of messages that wait for the quota")
        try:
            with own.hold(size_bytes), self._all.hold(size_bytes):
                yield
        finally:
            if not own.taken:
                self._by_tenant.pop(tenant, None)
