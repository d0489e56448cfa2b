"""The backend `triton`: judges on Triton's vLLM backend."""

from gradewire_server.judges.observers import RemoteJudgeObserver
from gradewire_server.judges.remote.backend import RemoteBackend
from gradewire_server.judges.remote.errors import ADDRESS_SETTING
from gradewire_server.judges.triton.server import TritonServer
from gradewire_server.settings.judge import RemoteJudgeConfig
from gradewire_server.settings.triton import TritonConfig
from gradewire_server.triton.client import TritonClient


class TritonJudges(RemoteBackend):
    """One judge on Triton's vLLM backend.

    Args:
        config: Where the server is.
        observer: Hears of the requests.

    Raises:
        ValueError: The address is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteJudgeObserver) -> None:
        try:
            triton = TritonConfig(config.url, tls=config.tls, token=config.token, timeout_s=config.timeout_s)
        except ValueError as error:
            raise ValueError(
                f"{ADDRESS_SETTING} must be HOST:PORT, of Triton's gRPC (8001 where nothing else is said)"
            ) from error

        async def server() -> TritonServer:
            return TritonServer(TritonClient(triton), config.model, config.url, config.image_placeholder)

        super().__init__("triton", config, observer, server)
