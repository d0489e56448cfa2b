"""What tenants do, for Prometheus: labels are names of the tokens file; callers without a tenant are left out."""

from prometheus_client import CollectorRegistry, Counter

from gradewire_server.domain.caller import Caller
from gradewire_server.tenants.quota import text_tokens


class TenantTelemetry:
    """Counts calls, text and refusals by tenant."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "gradewire_tenant_calls",
            "Calls that have ended, by tenant and gRPC code.",
            ("tenant", "code"),
            registry=registry,
        )
        self._text_tokens = Counter(
            "gradewire_tenant_text_tokens",
            "Tokens of text that a tenant's calls have sent, as quotas count them; what was refused is left out.",
            ("tenant",),
            registry=registry,
        )
        self._refusals = Counter(
            "gradewire_quota_refusals",
            "Calls that were refused because their tenant's quota of text is used up.",
            ("tenant",),
            registry=registry,
        )
        self._by_code: dict[tuple[str, str], Counter] = {}
        self._by_tenant: dict[str, Counter] = {}

    def finished(self, caller: Caller, code: str) -> None:
        """Counts a call that has ended with `code`."""
        if caller.tenant:
            counter = self._by_code.get((caller.tenant, code))
            if counter is None:
                counter = self._by_code[caller.tenant, code] = self._calls.labels(caller.tenant, code)
            counter.inc()

    def sent(self, caller: Caller, size_bytes: int) -> None:
        """Counts a message that was taken in."""
        if caller.tenant:
            counter = self._by_tenant.get(caller.tenant)
            if counter is None:
                counter = self._by_tenant[caller.tenant] = self._text_tokens.labels(caller.tenant)
            counter.inc(text_tokens(size_bytes))

    def refused(self, caller: Caller) -> None:
        """Counts a call that its tenant's quota had no room for."""
        if caller.tenant:
            self._refusals.labels(caller.tenant).inc()
