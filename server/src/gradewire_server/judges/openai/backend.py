"""The backend `openai`: judges behind OpenAI-compatible servers (vLLM's, llama.cpp's, a paid one)."""

import asyncio

from gradewire_server.judges.observers import RemoteJudgeObserver
from gradewire_server.judges.openai.server import OpenAIServer
from gradewire_server.judges.remote.backend import RemoteBackend
from gradewire_server.judges.remote.http_client import HttpClient, checked
from gradewire_server.settings.judge import RemoteJudgeConfig


class OpenAIJudges(RemoteBackend):
    """One judge behind an OpenAI-compatible server.

    Args:
        config: Where the server is.
        observer: Hears of the requests.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteJudgeObserver) -> None:
        checked(config)

        async def server() -> OpenAIServer:
            # On a thread: it reads certificates and imports what connects.
            client = await asyncio.to_thread(HttpClient.loaded, config)
            return OpenAIServer(client, config.model, config.assistant_prefill, config.reasoning_tokens)

        super().__init__("openai", config, observer, server)
