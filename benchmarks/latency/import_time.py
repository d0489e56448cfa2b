"""How long `import gradewire` takes: `python -m benchmarks.latency.import_time [--python PYTHON] [--runs N]`.

The best of several new processes, less the best of as many that import nothing: other programs on the machine only add
to a time. `--python` names the interpreter of another environment, for instance of one with a plain install.
"""

import argparse
import subprocess
import sys
import time


def best_s(python: str, program: str, runs: int) -> float:
    """Shortest wall-clock time of a process that runs the program, seconds."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run([python, "-c", program], check=True)
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Prints the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    nothing_s = best_s(arguments.python, "pass", arguments.runs)
    with_gradewire_s = best_s(arguments.python, "import gradewire", arguments.runs)
    print(f"python alone     {nothing_s * 1000:6.0f} ms")
    print(f"import gradewire {(with_gradewire_s - nothing_s) * 1000:6.0f} ms on top, best of {arguments.runs}")


if __name__ == "__main__":
    main()
