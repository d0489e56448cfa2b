"""The embedded engine across a fork, as data loaders make them."""

import gc
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from gradewire import Scorer

ROW = {"references": ["a cat"], "prediction": "a kitten on a mat"}
FORK = multiprocessing.get_context("fork")


def score_and_forget(scorers: list[Scorer], answer: Connection) -> None:
    answer.send(scorers[0].score([ROW])[0].scores["smile"].score)
    # What the parent opened goes with the last reference to it; destroying it here would wait for the parent's threads.
    scorers.clear()
    gc.collect()
    answer.send("ended")


def test_a_forked_child_opens_an_engine_of_its_own(tmp_path: Path, minilm: Path) -> None:
    scorers = [Scorer.embedded(model_repository=minilm, disk_directory=tmp_path)]
    before = scorers[0].score([ROW])[0].scores["smile"].score
    assert before is not None
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=score_and_forget, args=(scorers, theirs))
    child.start()
    try:
        assert ours.poll(30), "the child hangs while scoring"
        in_child = ours.recv()
        assert abs(in_child - before) < 2e-4
        assert ours.poll(10), "the child hangs while letting go"
        assert ours.recv() == "ended"
        child.join(20)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
    assert scorers[0].score([ROW])[0].scores["smile"].score == before
    scorers[0].close()
