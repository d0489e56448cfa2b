"""Measure how validation slows down training with a running and with a dead server, and count lost scores.

Run it in an environment with torch: `.venv-frameworks/bin/python -m benchmarks.load.validation`. A small model trains
on one core, and a server scores on a second core. Blocks of steps with and without validation take turns in random
order. Every block first answers its validation questions. The program counts validations that are not scored at a
block's last step, and waits for them outside the timing. CPU time includes the scoring threads and this wait; if other
programs run, it is more reliable than wall-clock time. Then the server is killed for a while. Steps continue, and all
must have scores at the end.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common.measurements import machine
from benchmarks.common.ports import free_port
from benchmarks.common.servers import GRADEWIRE

from gradewire.integrations import StepState, ValidationScorer
from gradewire.integrations.training.sinks import CsvSink

_TRAINING_CORE, _SERVER_CORE = 0, 1


@dataclass
class Server:
    """A server on a separate core, always on the same port."""

    directory: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the server on its core without waiting."""
        flags = ["--port", str(self.port), "--http-port", "0", "--drain-s", "0"]
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {_SERVER_CORE})  # only this thread and its children get this core
        with (self.directory / "server.log").open("ab") as log:
            store = ["--disk-directory", str(self.directory / "store")]
            self.process = subprocess.Popen([GRADEWIRE, "serve", *flags, *store], stdout=log, stderr=log)
        os.sched_setaffinity(0, mine)

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class Training:
    """The model, its steps, and its validation answers.

    Attributes:
        answer: Function that returns a validation's items; the argument makes the texts new to the server.
        late: Number of blocks whose scores arrived after the last step.
    """

    train: Callable[[], None]
    answer: Callable[[int], list[dict[str, object]]]
    steps: int = 0
    late: int = 0

    def block(self, steps: int, validation: ValidationScorer | None) -> tuple[float, float]:
        """Run a block; return its seconds and CPU seconds until all scores have arrived."""
        began, cpu_began = time.perf_counter(), time.process_time()
        items = self.answer(self.steps)
        if validation is not None:
            validation.submit(self.steps, items)
        for _ in range(steps):
            self.train()
            self.steps += 1
        taken_s = time.perf_counter() - began
        if validation is not None and not validation.wait(0):
            self.late += 1
            validation.wait(600)
        return taken_s, time.process_time() - cpu_began


def make_training(items: int, width: int) -> Training:
    """Return a training on one thread, with two layers of `width` and a batch of 256."""
    import torch
    from examples.training.questions import ROWS, Adder, all_numbers, answers
    from torch.nn import functional

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, numbers = Adder(width), all_numbers().repeat(3, 1)[:256]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def train() -> None:
        loss = functional.cross_entropy(model(numbers), numbers.sum(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def answer(step: int) -> list[dict[str, object]]:
        said = answers(model, all_numbers())
        return [
            {**ROWS[row % 100], "prediction": f"I think, at step {step + row // 100}, that it is {said[row % 100]}."}
            for row in range(items)
        ]

    return Training(train, answer)


def main() -> None:
    """Run the rounds, then the outage, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of one block with and one without validation")
    parser.add_argument("--steps", type=int, default=300, help="steps of each block")
    parser.add_argument("--items", type=int, default=100, help="items of each validation")
    parser.add_argument("--width", type=int, default=1024, help="width of the model")
    parser.add_argument("--metrics", default="smile,exact_match")
    parser.add_argument("--dead-s", type=float, default=30.0, help="seconds without a server")
    arguments = parser.parse_args()
    load = [os.getloadavg()[0]]
    os.sched_setaffinity(0, {_TRAINING_CORE})
    training = make_training(arguments.items, arguments.width)
    with TemporaryDirectory() as directory:
        server = Server(Path(directory))
        server.start()
        with ValidationScorer(
            f"127.0.0.1:{server.port}",
            arguments.metrics,
            directory=Path(directory) / "spool",
            sinks=[CsvSink(Path(directory) / "scores.csv")],
        ) as validation:
            try:
                rounds(training, validation, arguments.rounds, arguments.steps)
                load.append(os.getloadavg()[0])
                outage(training, validation, server, arguments.dead_s)
            finally:
                server.kill()
    load.append(os.getloadavg()[0])
    print(f"load before, between, after: {', '.join(f'{value:.1f}' for value in load)}; {machine()}")


def rounds(training: Training, validation: ValidationScorer, count: int, steps: int) -> None:
    """Run blocks with and without validation in turns, and print their ratio."""
    for warm in (validation, None):
        training.block(steps, warm)
    training.late = 0
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(count):
        for way in random.sample((True, False), 2):
            taken[way].append(training.block(steps, validation if way else None))
    for place, what in enumerate(("time", "CPU time")):
        without, with_ = ([block[place] for block in taken[way]] for way in (False, True))
        ratios = [one / other for one, other in zip(with_, without, strict=True)]
        quartiles = statistics.quantiles(ratios, n=4)
        print(
            f"{what} of a step, {count} blocks of {steps}: without {statistics.median(without) / steps * 1e3:.2f} ms, "
            f"with {statistics.median(with_) / steps * 1e3:.2f} ms; ratio of a round's two blocks: median "
            f"{quartiles[1]:.3f}, quartiles {quartiles[0]:.3f} to {quartiles[2]:.3f}"
        )
    print(f"{training.late} of {count} validations were scored after the last step of their block")


def outage(training: Training, validation: ValidationScorer, server: Server, dead_s: float) -> None:
    """Submit twice a second while the server is killed and restarted; print the counts."""
    already = validation.counts()[StepState.SCORED]

    def restart() -> None:
        server.kill()
        time.sleep(dead_s)
        server.start()

    killer = threading.Thread(target=restart)
    killer.start()
    submits_s: list[float] = []
    steps_s: list[float] = []
    first = training.steps
    while killer.is_alive():
        items = training.answer(training.steps)[:20]
        began = time.perf_counter()
        state = validation.submit(training.steps, items)
        submits_s.append(time.perf_counter() - began)
        assert state is StepState.NOT_SCORED, state
        until = time.perf_counter() + 0.5
        while time.perf_counter() < until:
            began = time.perf_counter()
            training.train()
            training.steps += 1
            steps_s.append(time.perf_counter() - began)
    killer.join()
    everything = validation.wait(300)
    scored = {scores.step for scores in validation.results() if scores.step >= first and not scores.problem}
    print(
        f"server dead for {dead_s:g} s: {len(submits_s)} validations submitted, "
        f"{validation.counts()[StepState.SCORED] - already} scored ({len(scored)} steps), "
        f"{validation.counts()[StepState.DROPPED]} dropped, all finished: {everything}; "
        f"step {statistics.median(steps_s) * 1e3:.2f} ms, submit {statistics.median(submits_s) * 1e3:.2f} ms "
        f"(longest {max(submits_s) * 1e3:.1f} ms); no exception"
    )


if __name__ == "__main__":
    main()
