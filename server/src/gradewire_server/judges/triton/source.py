"""Judges on Triton's vLLM backend."""

from gradewire_server.judges.remote.observer import RemoteObserver
from gradewire_server.judges.remote.source import RemoteSource
from gradewire_server.judges.triton.server import TritonServer
from gradewire_server.settings.groups import TritonConfig
from gradewire_server.settings.judge import RemoteJudgeConfig
from gradewire_server.triton.client import TritonClient


class TritonJudges(RemoteSource):
    """See `JudgeSource`.

    Args:
        config: Where the server is.
        observer: Told what happens.

    Raises:
        ValueError: The address is none.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteObserver) -> None:
        try:
            link_config = TritonConfig(config.url, tls=config.tls, token=config.token, timeout_s=config.timeout_s)
        except ValueError as error:
            raise ValueError(
                "judge_url must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)"
            ) from error

        async def connect() -> TritonServer:
            server = TritonServer(TritonClient(link_config), config.model)
            try:
                await server.find_out()
            except BaseException:
                await server.close()
                raise
            return server

        super().__init__("triton", config, observer, connect)
