"""Makes the logs in `inspect/` with inspect-ai and its mock model: README.md beside this says how to run it.

Four tasks: free answers (list targets, chat messages, a picture, two epochs, one sample that fails), choices, sums, and
a run in which all samples fail.
"""

import sys
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, task
from inspect_ai import eval as run
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, Target, choice, f1, includes, match, mean, scorer
from inspect_ai.solver import TaskState, generate, multiple_choice, solver

# A square of two by two pixels, red.
RED = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJ"
    "RU5ErkJggg=="
)
SAID = {
    "moon": "The Moon",
    "bridge": "It was built in 1894, I believe.",
    "colour": "red",
    "recipe": "flour, water and salt",
    "broken": "never said",
}


@solver
def fails_on(identifier: str) -> Any:
    """Fails one sample, as a sandbox or a tool of a real run does."""

    async def solve(state: TaskState, generate: Any) -> TaskState:
        if identifier in {state.sample_id, "*"}:
            raise RuntimeError("the tool gave no answer")
        return await generate(state)

    return solve


@scorer(metrics={"short": [mean()], "words": [mean()]})
def lengths() -> Any:
    """A score of several values."""

    async def score(state: TaskState, target: Target) -> Score:
        words = len(state.output.completion.split())
        return Score(value={"short": words <= len(target.text.split()), "words": words}, answer=state.output.completion)

    return score


@task
def free_answers() -> Task:
    """Free answers with everything that an input and a target may be."""
    samples = [
        Sample(id="moon", input="What goes round the Earth?", target="the Moon", metadata={"topic": "sky"}),
        Sample(
            id="bridge",
            input=[
                ChatMessageSystem(content="Answer in one sentence."),
                ChatMessageUser(content="When was Tower Bridge opened?"),
            ],
            target=["1894", "in 1894"],
            metadata={"topic": "history"},
        ),
        Sample(
            id="colour",
            input=[
                ChatMessageUser(
                    content=[ContentText(text="Which colour has the square?"), ContentImage(image=RED)],
                )
            ],
            target=["red", "crimson"],
            metadata={"topic": "pictures"},
        ),
        Sample(id="recipe", input="What is in plain bread?", target="water, flour, salt"),
        Sample(id="broken", input="What does a sample do that fails?", target="nothing"),
    ]
    return Task(
        dataset=MemoryDataset(samples, name="free"),
        solver=[fails_on("broken")],
        scorer=[includes(), f1(), lengths()],
        epochs=Epochs(2, ["mean"]),
        fail_on_error=False,
    )


@task
def choices() -> Task:
    """Multiple choice: targets are letters."""
    samples = [
        Sample(id=1, input="Which of these is a metal?", choices=["oak", "iron", "wool"], target="B"),
        Sample(id=2, input="Which two are birds?", choices=["owl", "trout", "swan"], target=["A", "C"]),
        Sample(id=3, input="Which one is a fruit?", choices=["pear", "brick"], target="A"),
    ]
    return Task(dataset=MemoryDataset(samples, name="choices"), solver=multiple_choice(), scorer=choice())


@task
def sums() -> Task:
    """Samples without ids of their own."""
    samples = [Sample(input="2 + 2 =", target="4"), Sample(input="3 * 3 =", target="9")]
    return Task(dataset=MemoryDataset(samples, name="sums"), solver=generate(), scorer=match(numeric=True))


@task
def all_fail() -> Task:
    """A run that ends by an error."""
    samples = [Sample(id="one", input="Is anybody there?", target="no")]
    return Task(dataset=MemoryDataset(samples), solver=[fails_on("*")], scorer=includes())


def said(messages: Any, *_: Any) -> ModelOutput:
    """What the mock model says: by words of the question."""
    asked = messages[-1].text
    by_words = {
        "goes round": SAID["moon"],
        "Tower": SAID["bridge"],
        "colour": SAID["colour"],
        "bread": SAID["recipe"],
        "metal": "ANSWER: B",
        "birds": "ANSWER: A",
        "fruit": "The pear, of course",
        "2 + 2": "4",
        "3 * 3": "It is 6",
    }
    output = ModelOutput.from_content("mock", next(text for words, text in by_words.items() if words in asked))
    # Without it the mock model counts tokens, by a table that it would download.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def without_the_machine(log: EvalLog) -> EvalLog:
    """The log without paths, commits and tracebacks of the machine that ran it, and without its events."""
    log.eval.task_file, log.eval.revision = "make_inspect.py", None
    for error in (log.error, *(sample.error for sample in log.samples or ())):
        if error is not None:
            error.traceback = error.traceback_ansi = "(left out)"
    for sample in log.samples or ():
        sample.events = []
        sample.events_data = None
    return log


def main(folder: Path) -> None:
    """Runs each task, and writes its log as .json and as .eval by inspect's own writer."""
    for each in (free_answers, choices, sums, all_fail):
        model = get_model("mockllm/model", custom_outputs=said, memoize=False)
        ran = run(each(), model=model, log_dir=str(folder / "raw"), log_format="eval", display="none", max_samples=1)
        log = without_the_machine(read_eval_log(ran[0].location, resolve_attachments=False))
        for suffix in ("json", "eval"):
            write_eval_log(log, str(folder / suffix / f"{log.eval.task}.{suffix}"))


main(Path(sys.argv[1]))
