"""Validation in torchmetrics: each rank scores its own answers; `compute` returns the same means on all ranks.

Start a server, then run: torchrun --nproc-per-node 2 -m examples.training.torch_metric_ranks --server 127.0.0.1:50051
"""

import argparse
import json

import torch
from examples.training.questions import ROWS, Adder, all_numbers, answers
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from gradewire.integrations.training.torch_metric import GradewireMetric


def main() -> None:
    """Train on two ranks, and print the values on each rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT of a gradewire server")
    parser.add_argument("--metrics", default="exact_match,smile", help="metrics to score with")
    arguments = parser.parse_args()

    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = DistributedDataParallel(Adder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    mine, numbers = ROWS[rank::ranks], all_numbers()[rank::ranks]
    metric = GradewireMetric(arguments.server, arguments.metrics)
    for step in range(1, 201):
        loss = functional.cross_entropy(model(numbers), numbers.sum(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in {10, 200}:
            said = answers(model, numbers)
            metric.update(said, [row["references"] for row in mine], [row["question"] for row in mine])
            values = {name: value.item() for name, value in metric.compute().items()}
            print(json.dumps({"rank": rank, "step": step, "mine": metric.counts(), **values}), flush=True)  # noqa: T201 - a program
            metric.reset()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
