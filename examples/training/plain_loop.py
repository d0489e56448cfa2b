"""Validation in your own loop: the loop submits its answers every 25 steps and continues.

Start a server, then run: python -m examples.training.plain_loop --server 127.0.0.1:50051 --directory runs/plain
"""

import argparse
from pathlib import Path

import torch
from examples.training.questions import ROWS, Adder, all_numbers, answers
from torch.nn import functional

from gradewire.integrations import ValidationScorer
from gradewire.integrations.training.sinks import available_sinks


def main() -> None:
    """Train, and print the scores of each validation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT of a gradewire server")
    parser.add_argument(
        "--directory", type=Path, required=True, help="directory of the run: spool, scores.csv, tensorboard"
    )
    parser.add_argument("--metrics", default="exact_match,smile", help="metrics to score with")
    parser.add_argument("--steps", type=int, default=200, help="number of training steps")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model, numbers = Adder(), all_numbers()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with ValidationScorer(
        arguments.server,
        arguments.metrics,
        directory=arguments.directory / "spool",
        sinks=available_sinks(arguments.directory),
    ) as validation:
        for step in range(1, arguments.steps + 1):
            loss = functional.cross_entropy(model(numbers), numbers.sum(dim=1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 25 == 0:
                said = answers(model, numbers)
                rows = [{**row, "prediction": answer} for row, answer in zip(ROWS, said, strict=True)]
                validation.submit(step, rows)
        validation.wait(60)
        for scores in validation.results():
            print(scores.step, scores.state, scores.scalars())  # noqa: T201 - a program


if __name__ == "__main__":
    main()
