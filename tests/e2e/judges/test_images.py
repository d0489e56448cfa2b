"""Pictures from the client's socket to that of a judge that sees: a server that answers as vLLM's would."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from grpc import aio
from tests.server.judges.pictures import SVG, moving, picture, png_bomb
from tests.support.fakes.odd_openai import Heard, OddServer, completion, reply
from tests.support.servers.server_process import ServerProcess

from gradewire import AsyncClient, Item, JudgeVerdict, Smile, Status
from gradewire_cli.group import gradewire
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

SEEING = {"object": "list", "data": [{"id": "m", "owned_by": "vllm", "capabilities": {"vision": True}}]}
ROW: dict[str, Any] = {"question": "What is on the mat?", "references": ["a cat", "cat"], "prediction": "a grey cat"}
METRICS = {"smile": Smile(), "seen": JudgeVerdict(image=True), "told": JudgeVerdict()}


def saying_correct(heard: Heard) -> bytes:
    del heard
    return completion(" correct", [{" correct": -0.1, " incorrect": -2.5}], prompt_tokens=9, completion_tokens=1)


@pytest.fixture
async def judge() -> AsyncIterator[OddServer]:
    async with OddServer(models=reply(200, SEEING), answers=[saying_correct]) as server:
        yield server


@pytest.fixture
async def server(tmp_path: Path, minilm: Path, judge: OddServer) -> AsyncIterator[ServerProcess]:
    settings: dict[str, Any] = {
        "model_repository": minilm,
        "judge_backend": "openai",
        "judge_url": judge.url,
        "judge_remote_model": "m",
        "judge_image_hosts": "images.example.org",
    }
    process = ServerProcess(tmp_path, **settings)
    await asyncio.to_thread(process.__enter__)
    try:
        yield process
    finally:
        await asyncio.to_thread(process.__exit__, None, None, None)


def pictures_of(heard: Heard) -> list[str]:
    content = heard.body["messages"][-2]["content"]
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


async def test_hostile_pictures_each_get_their_status_and_nothing_is_fetched(
    server: ServerProcess, judge: OddServer
) -> None:
    visits: list[object] = []
    trap = await asyncio.start_server(lambda *_: visits.append(1), "127.0.0.1", 0)
    port = trap.sockets[0].getsockname()[1]
    good = picture()
    bad: dict[str, list[Any]] = {
        "none": [],
        "empty": [b""],
        "text": [b"a cat"],
        "cut": [picture(size=(99, 99))[:-30]],
        "bomb": [png_bomb(20_000, 5_000)],
        "svg": [SVG.replace(b"127.0.0.1:1", f"127.0.0.1:{port}".encode())],
        "moving": [moving("GIF")],
        "heavy": [good + bytes(9 << 20)],
        "second": [good, SVG],
        "many": [good] * 300,
        "file": ["file:///etc/passwd"],
        "path": ["photo.png"],
        "http": [f"http://127.0.0.1:{port}/a.png"],
        "loopback": [f"https://127.0.0.1:{port}/a.png"],
        "metadata": ["https://169.254.169.254/latest/meta-data"],
        "other host": ["https://evil.example.org/a.png"],
        "user": ["https://images.example.org@evil.org/a.png"],
        "data of text": ["data:text/html;base64,PGI+"],
        "base64": ["data:image/png;base64,!!!!"],
        "type": ["data:image/gif;base64," + base64.b64encode(good).decode()],
    }
    items = [Item(id=name, images=images, **ROW) for name, images in bad.items()]
    items.insert(7, Item(id="good", images=[good, "https://images.example.org/a.png"], **ROW))
    async with AsyncClient(server.address) as client:
        report = await client.score(items, METRICS)
    trap.close()
    for item in report:
        seen = item.scores["seen"]
        wanted = Status.OK if item.id == "good" else Status.INVALID_INPUT
        assert (item.id, seen.status) == (item.id, wanted), seen.message
        assert item.id == "good" or "images" in seen.message
        assert item.scores["smile"].status is item.scores["told"].status is Status.OK, item.id
    assert visits == []
    shown = [urls for urls in map(pictures_of, judge.heard) if urls]
    assert shown == [[f"data:image/png;base64,{base64.b64encode(good).decode()}", "https://images.example.org/a.png"]]


async def test_other_metrics_leave_first_and_wait_for_no_picture(server: ServerProcess, judge: OddServer) -> None:
    judge.gate.clear()
    pictures = [picture("JPEG", (320, 240), f"rgb({n}, {n}, 9)") for n in range(200)]
    items = [
        types_pb2.Item(**ROW | {"prediction": f"{n} cats"}, caption="a mat", images=[types_pb2.Image(data=each)])
        for n, each in enumerate(pictures)
    ]
    metrics = [
        types_pb2.MetricSpec(smile=types_pb2.SmileParameters()),
        types_pb2.MetricSpec(lave=types_pb2.LaveParameters(caption=True)),
        types_pb2.MetricSpec(judge_verdict=types_pb2.JudgeVerdictParameters(image=True)),
    ]
    config = scoring_pb2.ScoreStreamConfig(metrics=metrics)
    requests = [
        scoring_pb2.ScoreStreamRequest(config=config),
        scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=items)),
    ]
    order = []
    async with aio.insecure_channel(server.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        stub: Any = scoring_pb2_grpc.ScoringStub(channel)
        async for answer in stub.ScoreStream(iter(requests)):
            for part in answer.items:
                for result in part.results:
                    assert result.status == types_pb2.STATUS_OK, result.message
                    order.append(result.metric_index)
            if len(order) == len(items):
                judge.gate.set()  # no judge has answered so far
    assert order[: len(items)] == [0] * len(items)
    assert sorted(order[len(items) :]) == [1] * len(items) + [2] * len(items)


async def test_a_judge_without_eyes_says_so_and_is_listed_so(tmp_path: Path, minilm: Path) -> None:
    async with OddServer(owner="vllm", answers=[saying_correct]) as blind:
        settings: dict[str, Any] = {
            "model_repository": minilm,
            "judge_backend": "openai",
            "judge_url": blind.url,
            "judge_remote_model": "m",
        }
        process = ServerProcess(tmp_path, **settings)
        await asyncio.to_thread(process.__enter__)
        try:
            async with AsyncClient(process.address) as client:
                (item,) = await client.score([Item(images=[picture()], **ROW)], METRICS)
        finally:
            await asyncio.to_thread(process.__exit__, None, None, None)
    assert item.scores["seen"].status is Status.JUDGE_CANNOT_SEE
    assert "judge_sees_images" in item.scores["seen"].message
    assert "GRADEWIRE_JUDGE_SEES_IMAGES=yes" in item.scores["seen"].message
    assert item.scores["told"].status is item.scores["smile"].status is Status.OK
    assert [urls for urls in map(pictures_of, blind.heard) if urls] == []


async def test_the_command_sends_pictures_beside_its_file(
    server: ServerProcess, judge: OddServer, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    rows = [{"id": "there", "image": "a.png", **ROW}, {"id": "nowhere", "image": "b.png", **ROW}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["score", str(file), "--server", server.address, "--metrics", "judge_verdict?image=true,bleu"]
    done = await asyncio.to_thread(CliRunner().invoke, gradewire, [*words, "--fail-on", "never"])
    assert done.exit_code == 0, done.stderr
    there, nowhere = (json.loads(line)["scores"] for line in done.stdout.splitlines())
    assert there["judge_verdict?image=true"]["status"] == there["bleu"]["status"] == nowhere["bleu"]["status"] == "OK"
    unseen = nowhere["judge_verdict?image=true"]
    assert unseen["status"] == "INVALID_INPUT"
    assert unseen["message"].endswith("(picture b.png: the file is not in the folder of the rows)")
    assert [urls for urls in map(pictures_of, judge.heard) if urls] == [
        [f"data:image/png;base64,{base64.b64encode(picture()).decode()}"]
    ]
    listed = await asyncio.to_thread(CliRunner().invoke, gradewire, ["models", "list", "--server", server.address])
    assert "judge m (default): LOADED" in listed.stdout
    assert "  remote with continued openings, a choice of labels, sees pictures\n" in listed.stdout
