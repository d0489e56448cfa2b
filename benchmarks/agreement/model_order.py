"""Check that every command orders three drawn models by the truth, if you name no metric.

The best model answers in long sentences, and is wrong in few and plain words. The worst model repeats references, and
denies, hedges or lists where it does not know. A similarity puts the worst one on top. The truth is known, because this
program writes the answers. It prints the order by `score`, `leaderboard`, `compare` and the reward, and exits with 1
unless each of them is the true one.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.common.rows import DATA_DIRECTORY, read_lines
from benchmarks.common.servers import GRADEWIRE, start_engine

from gradewire.rewards import RewardSample, RewardScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.common.rows import Row

    Writer = Callable[[str, str, str], str]

FILES: Final = ("evouna_dev.jsonl", "nq301_human.jsonl")
# Share of right answers, and the forms of right and wrong answers from question, reference and a wrong candidate.
MODELS: Final[dict[str, tuple[float, Sequence[Writer], Sequence[Writer]]]] = {
    "best": (
        0.766,
        (
            lambda _q, right, _w: f"{right}, as far as the usual sources go.",
            lambda q, right, _w: f"If somebody asks {q.rstrip('?')}, one would have to say {right}.",
            lambda _q, right, _w: f"That would be {right}.",
        ),
        (lambda _q, _r, wrong: wrong, lambda _q, _r, wrong: f"It is {wrong}."),
    ),
    "middle": (
        0.69,
        (lambda _q, right, _w: right, lambda _q, right, _w: f"The answer is {right}."),
        (lambda _q, _r, wrong: f"The answer is {wrong}.", lambda q, _r, wrong: f"{q.rstrip('?')}? Surely {wrong}."),
    ),
    "worst": (
        0.615,
        (lambda _q, right, _w: right,),
        (
            lambda _q, right, _w: f"It is not {right}.",
            lambda _q, right, wrong: f"It is either {wrong} or {right}.",
            lambda _q, right, wrong: f"{wrong}, {right}, or something else.",
            lambda _q, right, _w: f"I do not know. Some say {right}, but nobody can tell.",
        ),
    ),
}


def drawn(paths: Sequence[Path], count: int, draw: random.Random) -> list[Row]:
    """Return `count` rows, in which every model answers the same questions."""
    questions = {row["question"]: min(row["references"], key=len) for path in paths for row in read_lines(path)}
    chosen = draw.sample(sorted(questions.items()), count // len(MODELS) + 1)
    rows = []
    for number, (question, right) in enumerate(chosen):
        wrong = draw.choice([other for _, other in draw.sample(chosen, 9) if other.casefold() != right.casefold()])
        for model, (share, rights, wrongs) in MODELS.items():
            label = int(draw.random() < share)
            write = draw.choice(rights if label else wrongs)
            row = {"id": f"{number}-{model}", "question": question, "references": [right], "model": model}
            rows.append({**row, "prediction": write(question, right, wrong), "label": label})
    return rows[:count]


def run(*arguments: object) -> None:
    """Run a gradewire command and print its output."""
    print("$ gradewire", *arguments, flush=True)
    subprocess.run([GRADEWIRE, *map(str, arguments)], check=True)


def main() -> None:
    """Draw the rows, run the commands with their defaults, and print the mean reward of each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="folder of EVOUNA's and NQ301's rows")
    parser.add_argument("--rows", type=int, default=5000, help="number of rows")
    parser.add_argument("--seed", type=int, default=3, help="seed of the draw")
    parser.add_argument("--out", type=Path, required=True, help="folder for the rows and the commands' output")
    given = parser.parse_args()
    rows = drawn([given.data / name for name in FILES], given.rows, random.Random(given.seed))  # noqa: S311 - no secret
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "rows.jsonl"
    unlabelled = [{name: value for name, value in row.items() if name != "label"} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in unlabelled), "utf-8")
    truth, rewards = defaultdict(list), defaultdict(list)
    for row in rows:
        truth[row["model"]].append(row["label"])
    with start_engine("embedded", {"max-deadline-s": "3600"}) as server:
        at = ("--server", server.address)
        run("score", file, *at, "--group-by", "model", "--out", given.out / "scores.jsonl")
        run("leaderboard", file, *at, "--json", given.out / "leaderboard.json")
        run("leaderboard", file, *at, "--by", "smile")
        run("compare", file, *at, "--baseline", "best", "--json", given.out / "compare.json")
        run("compare", file, *at, "--models", "middle,worst")
        with RewardScorer(server.address, deadline_s=3600) as scorer:
            samples = [RewardSample(row["prediction"], row["references"], row["question"]) for row in rows]
            for row, reward in zip(rows, scorer.score(samples), strict=True):
                rewards[row["model"]].append(reward.value)
    for model, labels in truth.items():
        values = [value for value in rewards[model] if value is not None]
        print(f"{model}: {fmean(labels):.3f} right; mean reward {fmean(values):.3f} of {len(values)} answers")
    wrong = [name for name, order in orders(given.out, rewards).items() if order != list(MODELS)]
    sys.exit(f"wrong order by {', '.join(wrong)}" if wrong else 0)


def orders(folder: Path, rewards: Mapping[str, Sequence[float | None]]) -> dict[str, list[str]]:
    """Return the models from the best to the worst, by each way of comparing them."""
    right, scores = defaultdict(list), defaultdict(list)
    for row in read_lines(folder / "scores.jsonl"):
        found, model = row["scores"]["correctness"], row["id"].partition("-")[2]
        if found["score"] is not None:
            right[model].append(float(found["correct"]))
            scores[model].append(found["score"])
    leaderboard = json.loads((folder / "leaderboard.json").read_text("utf-8"))["models"]
    candidates = json.loads((folder / "compare.json").read_text("utf-8"))["comparisons"]
    changes = {name: side["metrics"]["correctness"]["difference"]["value"] for name, side in candidates.items()}
    given = {name: [value for value in values if value is not None] for name, values in rewards.items()}
    return {
        "share right": _sorted({name: fmean(values) for name, values in right.items()}),
        "mean score": _sorted({name: fmean(values) for name, values in scores.items()}),
        "leaderboard": _sorted({each["model"]: each["elo"]["value"] for each in leaderboard}),
        "compare": _sorted({"best": 0.0, **changes}),
        "reward": _sorted({name: fmean(values) for name, values in given.items()}),
    }


def _sorted(values: Mapping[str, float]) -> list[str]:
    return sorted(values, key=values.__getitem__, reverse=True)


if __name__ == "__main__":
    main()
