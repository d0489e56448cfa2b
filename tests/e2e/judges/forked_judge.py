"""A program that judges rows, forks, and judges one of them in its child: `forked_judge.py SETTINGS ROWS`, both JSON.

Prints the results, how the child ended, and how many judges ran before it was closed and after.
"""

import gc
import json
import multiprocessing
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradewire import Scorer

settings, rows = map(json.loads, sys.argv[1:])
scorers = [Scorer.embedded(**settings)]


def score(rows: list[Any]) -> list[Any]:
    return [item.scores["judge_similarity"].to_dict() for item in scorers[0].score(rows, "judge_similarity")]


def workers() -> set[str]:
    running = set()
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread or a process may end while it is looked at
            for pid in children.read_text().split():
                if b"gradewire_server.judges.worker.main" in Path("/proc", pid, "cmdline").read_bytes():
                    running.add(pid)
    return running


def in_child(before: list[Any]) -> None:
    assert score(rows[-1:]) == before
    assert workers()
    scorers.clear()
    gc.collect()


before = score(rows)
judges = [len(workers())]
child = multiprocessing.get_context("fork").Process(target=in_child, args=(before[-1:],))
child.start()
child.join(60)
exit_code = child.exitcode
child.kill()
assert score(rows) == before
scorers[0].close()
judges.append(len(workers()))
json.dump({"results": before, "exit_code": exit_code, "judges": judges}, sys.stdout)
