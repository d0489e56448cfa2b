"""What the real server makes of descriptions that differ from the usual one."""

from dataclasses import replace
from pathlib import Path

import tritonclient.grpc
from tests.support.models.tiny_models import Package
from tests.support.servers.triton import TritonServer

from gradewire_models.build.install import build_model
from gradewire_models.repository.config import served_from_wire

SHORTEST_TEXTS = 40


def test_a_model_of_short_texts_is_warmed_up_and_a_server_says_which_device_it_chose(
    tmp_path: Path, bert: Package
) -> None:
    short = replace(bert.model, max_tokens=SHORTEST_TEXTS)
    undecided = replace(bert.model, name="tiny-undecided")
    for model in (short, undecided):
        build_model(model, tmp_path / "repository", wheels=bert.wheels)
    config = tmp_path / "repository/tiny-undecided/config.pbtxt"
    config.write_text(config.read_text().replace("  kind: KIND_CPU\n", ""))
    with (
        TritonServer(tmp_path, tmp_path / "repository") as server,
        tritonclient.grpc.InferenceServerClient(server.url) as client,
    ):
        for model in (short, undecided):
            answer = client.get_model_config(model.name).config.SerializeToString()
            assert served_from_wire(answer).kinds == {"KIND_CPU"}
            assert server.is_model_ready(model.name)
