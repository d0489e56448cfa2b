"""Judges behind OpenAI-compatible servers: vLLM's, llama.cpp's, a paid one."""

from gradewire_server.judges.openai.client import HttpLink, checked
from gradewire_server.judges.openai.server import OpenAIServer
from gradewire_server.judges.remote.observer import RemoteObserver
from gradewire_server.judges.remote.source import RemoteSource
from gradewire_server.settings.judge import RemoteJudgeConfig


class OpenAIJudges(RemoteSource):
    """See `JudgeSource`.

    Args:
        config: Where the server is.
        observer: Told what happens.

    Raises:
        ValueError: The address or the token is none.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteObserver) -> None:
        checked(config)

        async def connect() -> OpenAIServer:
            server = OpenAIServer(HttpLink(config), config.model, config.assistant_prefill)
            try:
                await server.find_out()
            except BaseException:
                await server.close()
                raise
            return server

        super().__init__("openai", config, observer, connect)
