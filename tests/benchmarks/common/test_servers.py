"""A server may be several processes: all of them count."""

import subprocess
import sys

from benchmarks.common.servers import cpu_s, whole_cpu_s

_PROGRAM = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "sum(range(10**7)); print(flush=True); input()"], stdin=subprocess.PIPE)
input()
child.communicate(b"\\n")
"""


def test_the_cpu_of_children_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # of the child, when it has worked
        whole_s, alone_s = whole_cpu_s(process.pid), cpu_s(process.pid)
        process.communicate(b"\n", timeout=30)
    assert whole_s > alone_s
