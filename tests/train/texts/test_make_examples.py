"""The user's files first, the generator for what is left; and the command that shows it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click.testing
import pytest
from tests.train.texts.tiny_wordnet import Entry, write_wordnet

from gradewire_train import TrainingError, texts
from gradewire_train import cli as cli_train_texts
from gradewire_train.examples import Example, Files
from gradewire_train.texts import examples_digest, make_examples
from gradewire_train.texts.lexicon import Lexicon

WORDS = {"sofa": Entry(["sofa", "couch"], topic=6), "chair": Entry(["chair"], topic=6), "bed": Entry(["bed"], topic=6)}


class Numbered:
    """Stands for the generator, which needs all of WordNet: an example a number."""

    def __init__(self, lexicon: Lexicon) -> None:
        del lexicon

    def examples(self, task: str, count: int, *, seed: int) -> Sequence[Example]:
        return [Example(task, f"made {number}", f"{seed}", "one", ("two",)) for number in range(count)]


@pytest.fixture(autouse=True)
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(texts, "Generator", Numbered)
    return write_wordnet(tmp_path / "wordnet", WORDS)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [
        {"question": "what is in the room", "answers": ["sofa", "sofa", "settee"]},
        {"question": "what is in the room", "answers": ["chair"]},
        {"question": "what is in the yard", "answers": ["bed", "bed", "cot"]},
        {"question": "what is in the yard", "answers": ["stone"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_users_examples_come_first_and_generated_ones_fill_up(wordnet: Path, questions: Path) -> None:
    counts = {"candidates": 3, "synonyms": 2, "descriptions": 2, "numbers": 1}
    found = make_examples(counts, Files(questions=[questions]), seed=4, wordnet=wordnet)
    by_task = {task: [each for each in found if each.task == task] for task in counts}
    assert {task: len(each) for task, each in by_task.items()} == counts
    assert {each.anchor for each in by_task["candidates"][:2]} == {"sofa", "bed"}
    assert by_task["candidates"][2].question == "made 0"
    assert "couch" in {by_task["synonyms"][0].anchor, by_task["synonyms"][0].positive.strip('."').lower()}
    assert all("what is in" in each.question.lower() for each in by_task["descriptions"])
    assert by_task["numbers"][0].question == "made 0"


def test_no_answer_of_the_question_is_a_negative_of_it(wordnet: Path, questions: Path) -> None:
    for seed in range(20):
        for example in make_examples({"candidates": 2}, Files(questions=[questions]), seed=seed, wordnet=wordnet):
            own = {"sofa", "settee"} if example.anchor == "sofa" else {"bed", "cot"}
            assert not own & set(example.negatives)


def test_pairs_are_read_for_nli(wordnet: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"s1": "a man eats", "positive": "a person eats", "negative": "nobody eats"}\n')
    found = make_examples({"nli": 2}, Files(nli_pairs=[path], columns={"anchor": "s1"}), seed=4, wordnet=wordnet)
    assert found[0] == Example("nli", "", "a man eats", "a person eats", ("nobody eats",))
    assert len(found) == 2


def test_pairs_that_a_sign_tells_apart_are_kept_and_the_same_answer_is_no_negative(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    kept = {"anchor": "C++", "positive": "the language C++", "negative": "C#"}
    dropped = {"anchor": "it rains", "positive": "rain falls", "negative": "It rains."}
    path.write_text("".join(f"{json.dumps(pair)}\n" for pair in (dropped, kept)))
    found = make_examples({"nli": 1}, Files(nli_pairs=[path]), seed=4, wordnet=tmp_path / "nowhere")
    assert found == [Example("nli", "", "C++", "the language C++", ("C#",))]


def test_no_wordnet_is_needed_where_the_users_pairs_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"anchor": "a man eats", "positive": "a person eats", "negative": "nobody eats"}\n')
    nowhere = tmp_path / "nowhere"
    found = make_examples({"nli": 1, "dates": 5}, Files(nli_pairs=[path]), seed=4, wordnet=nowhere, only={"nli"})
    assert [each.anchor for each in found] == ["a man eats"]
    with pytest.raises(TrainingError, match="cannot read WordNet's files"):
        make_examples({"nli": 2}, Files(nli_pairs=[path]), seed=4, wordnet=nowhere)


def test_a_task_made_alone_is_as_among_the_others(wordnet: Path, questions: Path) -> None:
    counts = {"candidates": 1, "synonyms": 2, "descriptions": 3, "numbers": 1}
    every = make_examples(counts, Files(questions=[questions]), seed=4, wordnet=wordnet)
    alone = make_examples(counts, Files(questions=[questions]), seed=4, wordnet=wordnet, only={"candidates"})
    assert alone == [example for example in every if example.task == "candidates"]


def test_the_same_seed_gives_the_same_texts(wordnet: Path, questions: Path) -> None:
    def digest(seed: int) -> str:
        return examples_digest(
            make_examples({"descriptions": 4}, Files(questions=[questions]), seed=seed, wordnet=wordnet)
        )

    assert digest(1) == digest(1) != digest(2)


def test_a_task_that_does_not_exist_is_told(wordnet: Path) -> None:
    with pytest.raises(TrainingError, match=r"unknown task colors\. Tasks are nli, .*colours"):
        make_examples({"colors": 1}, Files(), seed=1, wordnet=wordnet)


@pytest.fixture
def run(wordnet: Path) -> Callable[..., click.testing.Result]:
    def call(*arguments: object) -> click.testing.Result:
        given = ["--wordnet", str(wordnet), *map(str, arguments)]
        return click.testing.CliRunner().invoke(cli_train_texts.texts, given)

    return call


def test_the_command_shows_examples_counts_and_digest(run: Callable[..., click.testing.Result]) -> None:
    result = run("--task", "names", "--count", 2, "--seed", 9)
    assert result.exit_code == 0
    expected = [example for number in range(2) if (example := Example("names", f"made {number}", "9", "one", ("two",)))]
    assert result.output.splitlines() == [
        "names: made 0", "  = 9", "  + one", "  - two",
        "names: made 1", "  = 9", "  + one", "  - two",
        "names: 2 examples, 6 texts of 5.0 words on average",
        f"2 examples, SHA-256 {examples_digest(expected)}",
    ]  # fmt: skip


def test_the_command_writes_examples_that_a_training_reads(
    run: Callable[..., click.testing.Result], tmp_path: Path
) -> None:
    result = run("--task", "dates", "--count", 3, "--out", tmp_path / "examples.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "examples.jsonl").read_text().splitlines()]
    assert result.output.startswith("dates: 3 examples")
    assert rows[0] == {"task": "dates", "question": "made 0", "anchor": "1", "positive": "one", "negatives": ["two"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--column", "answers"], "must have the format OURS=YOURS"),
        (["--wordnet", "/nowhere"], "cannot read WordNet's files in /nowhere"),
        (["--task", "colors"], "is not one of"),
    ],
)
def test_the_command_says_what_is_wrong(
    run: Callable[..., click.testing.Result], arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in result.output


def test_bad_lines_are_an_error_or_are_left_out(run: Callable[..., click.testing.Result], questions: Path) -> None:
    with questions.open("a") as lines:
        lines.write('{"question": "what"}\n')
    result = run("--task", "candidates", "--count", 2, "--questions", questions)
    assert result.exit_code == 1
    assert 'line 5: field "answer" is missing' in result.output
    assert run("--task", "candidates", "--count", 2, "--questions", questions, "--skip-bad-lines").exit_code == 0
