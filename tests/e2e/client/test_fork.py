"""The embedded engine across a fork, as data loaders make them; in a process of its own, as forks copy everything."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gc, multiprocessing, sys
from gradewire import Scorer

ROW = {"references": ["a cat"], "prediction": "a kitten on a mat"}
# Writing an 8-bit graph into the new store takes seconds.
scorers = [Scorer.embedded(model_repository=sys.argv[1], disk_directory=sys.argv[2], window_choice="fp32")]


def score():
    return scorers[0].score([ROW])[0].scores["smile"].score


def in_child(before):
    assert abs(score() - before) < 2e-4
    # What the parent opened would go with the last reference to it, and wait for the parent's threads.
    scorers.clear()
    gc.collect()


before = score()
child = multiprocessing.get_context("fork").Process(target=in_child, args=(before,))
child.start()
child.join(30)
print("child:", child.exitcode)
child.kill()
assert score() == before
scorers[0].close()
print("parent: fine")
"""


def test_a_forked_child_opens_an_engine_of_its_own(tmp_path: Path, minilm: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(minilm), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert ended.stdout.splitlines() == ["child: 0", "parent: fine"], ended.stderr
