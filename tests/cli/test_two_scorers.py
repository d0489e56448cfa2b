"""Scorers of one process: what one was set to is nothing to the others."""

from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

from gradewire import ExactMatch, Lave, Scorer, Status

LAVE = (files("gradewire_server.metrics.prompts") / "lave-2.toml").read_text()
ROW = {"question": "what?", "references": ["the cat"], "prediction": "the cat"}


def test_each_knows_the_prompts_of_its_own_directory(tmp_path: Path, minilm: Path) -> None:
    names = ("ours", "theirs", "ours")  # the third has another text under the name of the first
    with ExitStack() as stack:
        scorers = []
        for index, name in enumerate(names):
            directory = tmp_path / str(index)
            directory.mkdir()
            text = LAVE.replace('name = "lave"', f'name = "{name}"')
            (directory / "prompt.toml").write_text(f"{text}\n# {index}\n")
            scorer = Scorer.embedded(
                judge_prompt_directory=directory, disk_directory=tmp_path / f"store-{index}", model_repository=minilm
            )
            scorers.append(stack.enter_context(scorer))
        for scorer, own in zip(scorers, names, strict=True):
            for name in set(names):
                item = scorer.score([ROW], [Lave(prompt=f"{name}/2"), ExactMatch()])[0]
                status = next(iter(item.scores.values())).status
                # There is no judge here; a prompt that is not known is told before that.
                assert status is (Status.MODEL_UNAVAILABLE if name == own else Status.INVALID_PARAMETER)
