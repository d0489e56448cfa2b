"""A real server with its HTTP gateway, both of which send to a real receiver of OTLP."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.servers.otlp_receiver import OtlpReceiver, otlp_receiver
from tests.support.servers.server_process import ServerProcess


@pytest.fixture(scope="package")
def receiver() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as running:
        yield running


@pytest.fixture(scope="package")
def traced_server(
    tmp_path_factory: pytest.TempPathFactory, minilm: Path, receiver: OtlpReceiver
) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        patch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "50")
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        settings = {
            "model_repository": minilm,
            "judge_backend": "none",
            "wordnet_directory": directory / "nowhere",
            "http_api_port": 0,
            "otlp_endpoint": receiver.endpoint,
        }
        with ExitStack() as stack:
            with pytest.MonkeyPatch.context() as for_server:
                for_server.setenv("OTEL_TRACES_SAMPLER_ARG", "0")  # it traces only calls that their caller samples
                process = stack.enter_context(ServerProcess(directory, **settings))
            yield process
