"""The command line of tritonserver."""

import shutil
from pathlib import Path

from gradewire_triton.process import Ports, ServerOptions, command_line


def arguments(options: ServerOptions) -> list[str]:
    return command_line(options, Ports(1, 2, 3), backends=Path("/backends"), shm_prefix="mine_")


def test_all_models_are_loaded_but_those_that_need_a_gpu(tiny_repository: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(tiny_repository, repository)
    shutil.copytree(repository / "tiny-bert", repository / "tiny-gpu")
    config = repository / "tiny-gpu" / "config.pbtxt"
    config.write_text(config.read_text().replace("KIND_CPU", "KIND_GPU"))
    (repository / ".tiny-bert.building-x").mkdir()
    assert ServerOptions(repository).model_names() == ("tiny-bert", "tiny-mpnet")
    assert ServerOptions(repository, ("tiny-gpu",)).model_names() == ("tiny-gpu",)
    loaded = [argument for argument in arguments(ServerOptions(repository)) if argument.startswith("--load-model")]
    assert loaded == ["--load-model=tiny-bert", "--load-model=tiny-mpnet"]


def test_a_watching_server_is_told_how_often_and_loads_nothing_by_name(tiny_repository: Path) -> None:
    told = arguments(ServerOptions(tiny_repository, poll_s=3))
    assert {"--model-control-mode=poll", "--repository-poll-secs=3"} <= set(told)
    assert not any(argument.startswith("--load-model") for argument in told)


def test_it_listens_on_the_loopback_unless_told_otherwise(tiny_repository: Path) -> None:
    told = arguments(ServerOptions(tiny_repository))
    for service, port in (("grpc", 1), ("http", 2), ("metrics", 3)):
        assert f"--{service}-address=127.0.0.1" in told
        assert f"--{service}-port={port}" in told
