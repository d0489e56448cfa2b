"""Measure how long a call blocks the event loops of a server and its HTTP gateway.

`python -m benchmarks.latency.event_loops` starts `gradewire serve` with the HTTP API, lets `watching/` watch the loops,
and sends one call at a time, in every round with different texts. A hold is the time in milliseconds for which a loop
is blocked. The table shows the minimum over the rounds of each round's longest hold, because other programs also block
a loop. `own` is the process's part of the hold (its CPU time, if less), `cpu` the CPU time of the loop's thread. The
program prints rows with `own` of at least --show milliseconds, and the number of all calls.
"""

import argparse
import base64
import http.client
import io
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
from benchmarks.common.ports import free_port
from benchmarks.common.servers import start_engine
from benchmarks.latency.answering_judge import answering_judge
from google.protobuf import json_format

from gradewire.metrics import METRIC_TYPES
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc

Item = dict[str, Any]
_FIGURES: Final = struct.Struct("ddd")
_WATCHING: Final = Path(__file__).with_name("watching")
_PRESETS: Final = ("v1", "fast", "one_pass", "whole")
_JUDGED: Final = ("lave", "judgeGrade", "judgeSimilarity", "judgeVerdict", "auto")
_SETTLE_S: Final = 0.02

Case = tuple[str, Callable[[str], None]]
"""A case's name, and a function that sends the case with a unique mark."""


def hostile_items(mark: str = "") -> dict[str, Item]:
    """Return extreme items by name; `mark` makes every text new to the caches."""
    asked = {"question": f"What is it, {mark}?"}
    many = [f"reference {mark} {number} of many words" for number in range(1_000)]
    lengths = [f"{mark} " + " ".join(f"v{number}" for number in range(1, count)) for count in range(1, 200)]
    return {
        "2 000 words": {**asked, "references": ["an orchard", "a red brick barn"], "prediction": numbered(mark, 2_000)},
        "2 000 words, 199 lengths of references": {
            **asked,
            "references": lengths,
            "prediction": numbered(mark, 2_000),
        },
        "100 KB": {**asked, "references": ["an orchard"], "prediction": numbered(mark, 14_000)},
        "450 000 Han letters": {**asked, "references": [f"an orchard {mark}"], "prediction": mark + "語" * 450_000},
        "80 000 words": {**asked, "references": ["an orchard"], "prediction": f"{mark} " + "river glass " * 40_000},
        "1 000 references": {
            **asked,
            "references": many,
            "prediction": f"{mark} " + "a bridge of many words over the river " * 20,
        },
        "1 000 references of 1.3 KB": {
            **asked,
            "references": [f"{mark}{number} " + "an old bridge over it " * 60 for number in range(1_000)],
            "prediction": f"{mark} " + "a bridge of many words over the river " * 20,
        },
        "20 references of 65 KB": {
            **asked,
            "references": [f"{mark}word{number} " * 6_000 for number in range(20)],
            "prediction": f"{mark} " + "a bridge " * 2_000,
        },
        "one word of 400 KB": {**asked, "references": ["an orchard"], "prediction": mark + "x" * 400_000},
        "400 KB of marks": {**asked, "references": ["an orchard"], "prediction": mark + "-,.'" * 100_000},
        "400 KB of digits": {**asked, "references": ["17"], "prediction": mark + " 1,234 and 5.6" * 28_000},
        "300 KB of accents": {**asked, "references": ["é"], "prediction": mark + "e\u0301 \u1ebf\u0323" * 50_000},
        "200 KB of emoji": {**asked, "references": ["a cat"], "prediction": mark + "\U0001f408\u200d\u2b1b" * 20_000},
    }


def numbered(mark: str, count: int) -> str:
    """Return `count` different words."""
    return " ".join(f"{mark}w{number}" for number in range(count))


def pictured(mark: int, width: int = 2_000, count: int = 4) -> list[dict[str, Any]]:
    """Return `count` pictures of noise as PNG, about 3 MB each at a width of 1 000; needs Pillow and numpy."""
    import numpy as np
    from PIL import Image

    found = []
    for number in range(count):
        pixels = np.random.default_rng((mark, number)).integers(0, 256, (width // 2, width // 2, 3), np.uint8)
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG", compress_level=1)
        found.append({"data": base64.b64encode(data.getvalue()).decode(), "mediaType": "image/png"})
    return found


class Hold(NamedTuple):
    """The longest hold, and the longest CPU times of the loop's thread and of its process."""

    ms: float
    cpu_ms: float
    own_ms: float


class Watched:
    """A reader of the holds that a server's processes write to `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def reset(self) -> None:
        """Reset all holds."""
        for path in self._directory.iterdir():
            with path.open("r+b") as file:
                file.write(bytes(_FIGURES.size))

    def longest(self) -> dict[str, Hold]:
        """Return the longest holds since `reset`, by role."""
        found: dict[str, Hold] = {}
        for path in self._directory.iterdir():
            role = path.name.partition("-")[0]
            hold = Hold(*(1e3 * value for value in _FIGURES.unpack(path.read_bytes())))
            found[role] = Hold(*map(max, found.get(role, hold), hold))
        return found


@contextmanager
def watched_environment() -> Iterator[Watched]:
    """Watch the processes that start in the block."""
    with tempfile.TemporaryDirectory() as directory:
        before = dict(os.environ)
        os.environ["HOLDS_DIRECTORY"] = directory
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_WATCHING), before.get("PYTHONPATH"))))
        try:
            yield Watched(Path(directory))
        finally:
            os.environ.clear()
            os.environ.update(before)


def spec_of(metric: str) -> dict[str, Any]:
    """Return a metric in JSON."""
    name, _, preset = metric.partition(":")
    words = name.split("_")
    field = words[0] + "".join(word.title() for word in words[1:])
    return {field: {"preset": f"SMILE_PRESET_{preset.upper()}"} if preset else {}}


class Calls:
    """A sender of calls to a server's gRPC address and HTTP port."""

    def __init__(self, address: str, http_port: int) -> None:
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self._score = scoring_pb2_grpc.ScoringStub(grpc.insecure_channel(address, options=options)).Score
        self._http_port = http_port

    def grpc(self, items: list[Item], *metrics: str) -> None:
        """Score over gRPC; an item's error is part of its result."""
        request = {"items": items, "metrics": [spec_of(metric) for metric in metrics]}
        self._score(json_format.ParseDict(request, scoring_pb2.ScoreRequest()), timeout=300)

    def http(self, path: str, body: dict[str, Any] | list[dict[str, Any]]) -> None:
        """Post JSON or JSON lines, and read the reply; print a refusal."""
        lines = isinstance(body, list)
        text = "\n".join(map(json.dumps, body)) if isinstance(body, list) else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self._http_port, timeout=300)
        kind = "application/x-ndjson" if lines else "application/json"
        connection.request("POST", path, text, {"content-type": kind, "connect-timeout-ms": "300000"})
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        if reply.status != http.client.OK:
            print(f"{path}: {reply.status} {data[:200]!r}", file=sys.stderr)


def text_cases(calls: Calls) -> Iterator[Case]:
    """Yield extreme items with each metric that needs no judge, over gRPC."""
    names = [name for name, kind in METRIC_TYPES.items() if not (kind.asks_judge() or kind.needs_grader)]
    embedding = [*(f"smile:{preset}" for preset in _PRESETS), "sbert", "sfve", "bertscore", "correctness"]
    metrics = [*embedding, *(name for name in names if name not in {*embedding, "smile"})]
    for item in hostile_items():
        for metric in metrics:
            if item == "1 000 references of 1.3 KB" and metric in embedding:
                continue  # the encoder needs minutes, and 1 000 shorter references show the same for the loop
            yield (
                f"{item}, `{metric}`",
                lambda mark, item=item, metric=metric: calls.grpc([hostile_items(mark)[item]], metric),  # type: ignore[misc]
            )


def http_cases(calls: Calls) -> Iterator[Case]:
    """Yield cases over HTTP, which both processes read."""
    score, prepare = "/gradewire.v1.Scoring/Score", "/gradewire.v1.References/Prepare"
    exact: list[dict[str, Any]] = [{"exactMatch": {}}]
    for name in hostile_items():
        yield (
            f"{name}, `exact_match`, HTTP",
            lambda mark, name=name: calls.http(score, {"items": [hostile_items(mark)[name]], "metrics": exact}),  # type: ignore[misc]
        )

    def many(mark: str, words: int = 4, references: int = 4) -> list[Item]:
        return [
            {
                "question": f"What is {mark}{number}?",
                "references": [f"{mark}{number} é{other} " + "of wood " * words for other in range(references)],
                "prediction": f"{number} is " + "of wood " * words,
            }
            for number in range(4_096)
        ]

    def entries(mark: str, words: int = 4) -> list[dict[str, Any]]:
        return [{key: item[key] for key in ("question", "references")} for item in many(mark, words)]

    cider = [{"cider": {"corpus": "CORPUS_PREPARED"}}]
    yield "4 096 items, `exact_match`", lambda mark: calls.http(score, {"items": many(mark), "metrics": exact})
    yield "4 096 items, `cider`", lambda mark: calls.http(score, {"items": many(mark), "metrics": [{"cider": {}}]})
    yield (
        "4 096 items of 5 KB, `exact_match`",
        lambda mark: calls.http(score, {"items": many(mark, 120), "metrics": exact}),
    )
    yield (
        "4 096 items, ScoreStream",
        lambda mark: calls.http(
            "/gradewire.v1.Scoring/ScoreStream",
            [{"config": {"metrics": exact}}, {"items": {"items": many(mark)}}],
        ),
    )
    yield (
        "Prepare, 4 096 entries, cider",
        lambda mark: calls.http(prepare, {"entries": entries(mark), "metrics": cider}),
    )
    yield (
        "Prepare, 4 096 entries of 4 KB, immutable",
        lambda mark: calls.http(
            prepare,
            {"entries": entries(mark, 100), "metrics": cider, "immutable": True, "referenceSet": f"set {mark}"},
        ),
    )
    yield "Models.List", lambda _: calls.http("/gradewire.v1.Models/List", {})
    yield (
        "reward post, 512 answers of 2 000 words",
        lambda mark: calls.http(
            "/get_reward",
            {
                "query": [f"?{numbered(mark, 2_000)}"] * 512,
                "prompts": ["?"] * 512,
                "labels": ["an orchard"] * 512,
            },
        ),
    )


def judged_cases(calls: Calls) -> Iterator[Case]:
    """Yield cases for a judge, over HTTP."""
    score, compare = "/gradewire.v1.Scoring/Score", "/gradewire.v1.Judging/Compare"

    def compared(mark: str, name: str) -> None:
        item = hostile_items(mark)[name]
        pair = {"question": item["question"], "references": item["references"], "answerA": item["prediction"]}
        calls.http(compare, {"pairs": [{**pair, "answerB": f"not {item['prediction']}"}], "parameters": {}})

    for name in hostile_items():
        for metric in _JUDGED:
            yield (
                f"{name}, `{metric}`",
                lambda mark, name=name, metric=metric: calls.http(  # type: ignore[misc]
                    score, {"items": [hostile_items(mark)[name]], "metrics": [{metric: {}}]}
                ),
            )
        yield f"{name}, `compare`", lambda mark, name=name: compared(mark, name)  # type: ignore[misc]
    yield (
        "4 pictures of 3 MB, `judge_verdict`",
        lambda mark: calls.http(
            score,
            {
                "items": [
                    {"question": "?", "references": ["x"], "prediction": "y", "images": pictured(sum(mark.encode()))}
                ],
                "metrics": [{"judgeVerdict": {"image": True}}],
            },
        ),
    )
    yield (
        "chat of 1 MB",
        lambda mark: calls.http(
            "/v1/chat/completions",
            {"model": "default", "max_tokens": 1, "messages": [{"role": "user", "content": numbered(mark, 120_000)}]},
        ),
    )
    yield (
        "chat with 4 pictures of 3 MB",
        lambda mark: calls.http(
            "/v1/chat/completions",
            {
                "model": "default",
                "max_tokens": 1,
                "messages": [{
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        *(
                            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{each['data']}"}}
                            for each in pictured(sum(mark.encode()))
                        ),
                    ],
                }],
            },
        ),
    )  # fmt: skip
    yield (
        "decisions, a state of 1 MB",
        lambda mark: calls.http(
            "/v1/systemone",
            {
                "state": numbered(mark, 120_000),
                "questions": {"a": {"type": "noul", "instructions": "Is it?"}},
            },
        ),
    )


def measure(cases: Iterator[Case], watched: Watched, rounds: int, show_ms: float) -> None:
    """Print a row for every case that blocks a loop for at least `show_ms`."""
    count = shown = 0
    print("| call | server, ms | own | cpu | gateway, ms | own | cpu |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, send in cases:
        runs: list[dict[str, Hold]] = []
        for number in range(rounds):
            mark = f"m{count}x{number}"
            time.sleep(_SETTLE_S)
            watched.reset()
            send(mark)
            time.sleep(_SETTLE_S)
            runs.append(watched.longest())
        holds = [[run[role] for run in runs] for role in ("server", "gateway")]
        count += 1
        if max(min(hold.own_ms for hold in of_role) for of_role in holds) >= show_ms:
            shown += 1
            cells = [
                min(values)
                for of_role in holds
                for values in (
                    [hold.ms for hold in of_role],
                    [hold.own_ms for hold in of_role],
                    [hold.cpu_ms for hold in of_role],
                )
            ]
            print(f"| {name} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |", flush=True)
    print(f"\n{count} calls, {shown} of them blocked a loop for {show_ms:g} ms or longer")


def main() -> None:
    """Start a server and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--show", type=float, default=25, help="minimum milliseconds of a printed row (25)")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument(
        "--judges", metavar="DIR", type=Path, help="folder of built judges; default: a server that replies immediately"
    )
    parser.add_argument("--judge", default="smollm2-135m-instruct", help="name of the judge")
    options = parser.parse_args()
    flags = {"http-api-port": str(free_port()), "log-level": "warning"}
    if options.judges:
        flags |= {"judge-backend": "embedded", "judge-repository": str(options.judges)}
        flags |= {"judge-model": options.judge, "judge-max-item-tokens": "64"}
    print(f"load average before: {os.getloadavg()[0]:.1f}\n")
    with ExitStack() as stack:
        if not options.judges:
            url = stack.enter_context(answering_judge())
            flags |= {"judge-backend": "openai", "judge-url": url, "judge-remote-model": "judge"}
            flags |= {"judge-sees-images": "yes"}
        watched = stack.enter_context(watched_environment())
        server = stack.enter_context(start_engine("embedded", flags))
        calls = Calls(server.address, int(flags["http-api-port"]))
        warm = {"question": "?", "references": ["a warm up"], "prediction": "to warm up"}
        for metric in METRIC_TYPES:
            if not (METRIC_TYPES[metric].asks_judge() or METRIC_TYPES[metric].needs_grader):
                calls.grpc([warm], metric)
        first_judged = [("the judge's first item, `lave`", lambda _: calls.grpc([warm], "lave"))]
        cases = [*text_cases(calls), *http_cases(calls), *judged_cases(calls)]
        cases = [each for each in cases if options.only in each[0]]
        measure(iter(first_judged), watched, 1, 0)
        measure(iter(cases), watched, options.rounds, options.show)
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
