"""A gateway process that lives and does nothing is ended, so that another one can take its place."""

import os
import signal
from contextlib import suppress

import pytest

from gradewire_server.processes import http_gateway as gateways
from gradewire_server.processes.http_gateway import GatewayProcess, endpoint, gateway_settings
from gradewire_server.settings.server import Settings


async def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(http_api_port=0)
    with endpoint(settings) as handed:
        gateway = await GatewayProcess.open(handed, gateway_settings(settings, handed.private), "warning")
        try:
            os.kill(gateway.pid, signal.SIGSTOP)
            monkeypatch.setattr(gateways, "_SILENT_S", 1.5)  # it beats once a second
            lost = await gateway.lost()
            assert "has been silent for 1.5 s" in lost
            with pytest.raises(ProcessLookupError):
                os.kill(gateway.pid, 0)
        finally:
            with suppress(ProcessLookupError):
                await gateway.kill()
