"""The metric in torchmetrics' own hands: update, compute, reset, collections, and two real processes over gloo."""

import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import torchmetrics
from tests.client.small_server import SmallServer
from torch import distributed, multiprocessing

from gradewire import Client, InvalidRequest
from gradewire.integrations.training.torch_metric import GradewireMetric

NOBODY = "127.0.0.1:1"
PREDS = ["cat", "dog", "eel", "", "cat"]
TARGET: list[Any] = [["cat", "kitten"], "dog", ["carp"], ["cow"], "dog"]


def metric_of(address: str, **settings: Any) -> GradewireMetric:
    return GradewireMetric(address, "exact_match,rouge_l", **{"wait_s": 30.0, **settings})


def plain(values: dict[str, torch.Tensor]) -> dict[str, float]:
    return {name: value.item() for name, value in values.items()}


@pytest.fixture
def expected(small_server: SmallServer) -> dict[str, float]:
    """Of a client's one call over all answers."""
    small_server.script.score = lambda item: float(item.prediction in item.references) if item.prediction else None
    with Client(small_server.address) as client:
        items = [
            {"prediction": answer, "references": [right] if isinstance(right, str) else right}
            for answer, right in zip(PREDS, TARGET, strict=True)
        ]
        summary = client.score(items, "exact_match,rouge_l").summary()
    values: dict[str, float] = {}
    for label, figures in summary.items():
        assert figures.mean is not None
        values |= {label: figures.mean, f"{label}_not_scored": 0.2}
    return values


def test_batches_give_what_one_call_gives(small_server: SmallServer, expected: dict[str, float]) -> None:
    metric = metric_of(small_server.address)
    metric.update(PREDS[:2], TARGET[:2])
    metric.update(PREDS[2:], TARGET[2:], ["?"] * 3)
    assert plain(metric.compute()) == pytest.approx(expected)
    assert metric.counts()["exact_match"] == {"OK": 4, "EMPTY_PREDICTION": 1}
    metric.reset()
    metric.update(PREDS[:1], TARGET[:1])
    assert plain(metric.compute())["exact_match"] == 1.0


def test_forward_gives_the_batch_and_keeps_the_whole(small_server: SmallServer, expected: dict[str, float]) -> None:
    metric = metric_of(small_server.address)
    metric.update(PREDS[:1], TARGET[:1])
    assert plain(metric(PREDS[1:3], TARGET[1:3]))["exact_match"] == 0.5
    metric.update(PREDS[3:], TARGET[3:])
    assert plain(metric.compute()) == pytest.approx(expected)


def test_collections_copies_and_pickles_go_on(small_server: SmallServer, expected: dict[str, float]) -> None:
    collection = torchmetrics.MetricCollection({"a": metric_of(small_server.address)}).clone(prefix="val_")
    collection.update(PREDS, TARGET)
    values = plain(collection.compute())
    assert values["val_exact_match"] == pytest.approx(expected["exact_match"])
    again = pickle.loads(pickle.dumps(collection["a"]))  # noqa: S301 - of this test
    assert plain(again.compute()) == pytest.approx(expected)


def test_a_dead_server_raises_nothing_and_gives_no_number() -> None:
    metric = metric_of(NOBODY, wait_s=0.3)
    metric.update(PREDS, TARGET)
    values = plain(metric.compute())
    assert math.isnan(values["exact_match"])
    assert values["exact_match_not_scored"] == 1.0
    assert metric.counts()["rouge_l"] == {"UNAVAILABLE": 5}


def test_batches_of_unequal_lengths_are_refused(small_server: SmallServer) -> None:
    with pytest.raises(InvalidRequest, match="5, 4 and 5 entries"):
        metric_of(small_server.address).update(PREDS, TARGET[:4])


def _rank(rank: int, address: str, directory: str) -> None:
    """Each rank scores its shard; rank 1's last batch goes to nobody."""
    distributed.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=2)
    gathered: list[tuple[int, ...]] = []

    def gather(tensor: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
        gathered.append(tuple(tensor.shape))
        return list(torchmetrics.utilities.distributed.gather_all_tensors(tensor, group))

    metric = metric_of(address)
    metric.dist_sync_fn = gather
    metric.update(PREDS[rank::2], TARGET[rank::2])
    whole = plain(metric.compute())
    mine = metric.counts()
    away = metric_of(address if rank == 0 else NOBODY, wait_s=30.0 if rank == 0 else 0.3)
    away.update(PREDS[rank::2], TARGET[rank::2])
    Path(directory, f"rank{rank}").write_bytes(pickle.dumps((whole, mine, gathered, plain(away.compute()))))
    distributed.destroy_process_group()


def test_two_processes_meet_once_and_agree(
    small_server: SmallServer, expected: dict[str, float], tmp_path: Path
) -> None:
    multiprocessing.spawn(_rank, (small_server.address, str(tmp_path)), nprocs=2)
    found = [pickle.loads((tmp_path / f"rank{rank}").read_bytes()) for rank in (0, 1)]  # noqa: S301 - of this test
    for whole, _, gathered, _ in found:
        assert whole == pytest.approx(expected)
        assert len(gathered) == 1, "one reduction"
    assert [mine["exact_match"] for _, mine, _, _ in found] == [{"OK": 3}, {"OK": 1, "EMPTY_PREDICTION": 1}]
    for *_, away in found:
        assert away["exact_match_not_scored"] == pytest.approx(0.4)
        assert away["exact_match"] == pytest.approx(1 / 3)
