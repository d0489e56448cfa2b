"""Classes that a judge names: one question for each open verdict, equal ones once, and the cost before the first."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, write_rows
from tests.cli.judged import CUT_LETTERS, rows_of

from gradewire.errors import NotReady
from gradewire.metrics import Lave
from gradewire.testing import StubTransport
from gradewire_cli.results.error_classes import CLASSES, ERROR_CLASSES, FAILURE_MODES, OpenQuestion, WrongVerdicts
from gradewire_cli.scoring.class_judging import prompt_of
from gradewire_cli.server_prompts import prompt_viewer
from gradewire_proto.v1 import scoring_pb2, types_pb2


class Judge:
    """Names the label whose place is the number of words in the answer, and counts what it is asked."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails = fails

    def stub(self) -> StubTransport:
        """Other metrics score by length, and call an answer right from `CUT_LETTERS` letters on."""

        def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
            if "error_class" in request.metrics[0].lave.prompt:
                return self.answered(request)
            reply = answer(request)
            for result in (each for item in reply.items for each in item.results):
                result.correct = result.score * 100 >= CUT_LETTERS
            return reply

        return StubTransport(score)

    def answered(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        (spec,) = request.metrics
        labels = tomllib.loads(spec.lave.prompt)["variants"]["rating"]["steps"][0]["labels"]
        for item, sent in zip(reply.items, request.items, strict=True):
            self.asked.append((sent.prediction, ",".join(labels)))
            (result,) = item.results
            if self.fails:
                result.ClearField("score")
                result.status = types_pb2.STATUS_UNPARSABLE
                continue
            place = len(sent.prediction.split()) % len(labels)
            result.judge.labels.extend(labels)
            result.judge.probabilities.extend(0.9 if each == place else 0.1 for each in range(len(labels)))
        return reply


def open_questions() -> list[OpenQuestion]:
    """A question of each kind: families of evaluators by direction, and failure modes."""
    found = WrongVerdicts()
    item = {"id": "1", "references": ["the Danube"], "prediction": "the Danube river"}
    for metric in ("sbert", "lave", "correctness"):
        for called_right in (False, True):
            found.add(item, metric, {"score": 0.4, "line": f"{metric}/1"}, called_right=called_right)
    other = {"id": "2", "references": ["cat"], "prediction": "the animal"}
    found.add(other, "lave", {"score": 0.0, "line": "lave/1"}, called_right=False)
    return list(found.open_questions())


def test_rules_classes_are_not_asked_for_and_a_family_has_its_own() -> None:
    found = open_questions()
    names = [(each.position, each.kind, {one.name for one in each.classes}) for each in found]
    assert names[0] == (0, "class", {"paraphrasing", "synonym", "extended answer"})
    assert [(position, kind) for position, kind, _ in names] == [
        *((0, "class"), (2, "class"), (3, "class"), (4, "class"), (5, "class")),  # sbert's false acceptance has a class
        *((6, "class"), (6, "mode")),
    ]
    assert names[1][2] == {"paraphrasing", "synonym", "literal interpretation", "unknowable reasons"}
    assert names[2][2] == {"overgeneralization", "misleading emphasis", "unknowable reasons"}
    assert names[-1][2] == set(FAILURE_MODES) - {"same stem", "unknown issue"}
    assert all("threshold sensitivity" not in each for _, _, each in names)


@pytest.mark.parametrize("question", open_questions(), ids=lambda each: f"{each.position}-{each.kind}")
def test_a_servers_prompts_accept_the_question(question: OpenQuestion) -> None:
    prompt = prompt_of(question.classes, called_right=question.called_right)
    view = prompt_viewer(Lave(prompt=prompt, binary="judge", references="all").to_spec())
    item = types_pb2.Item(question="Which river?", references=["the Danube"], prediction="the Danube river")
    shown = view(item)
    assert shown is not None
    (asked,) = shown.rounds
    text = str(asked)
    assert all(f"The answer {each.phrase}: {each.text}" in text for each in question.classes)
    assert "the Danube river" in text
    assert f"Annotators say that the answer is {'wrong' if question.called_right else 'right'}" in text


def test_first_words_tell_the_statements_apart() -> None:
    """A judge reads labels at their first difference, so no two may begin alike."""
    for question in open_questions():
        firsts = [each.phrase.split()[0] for each in question.classes]
        assert len(set(firsts)) == len(firsts) > 1


def test_one_class_is_no_choice() -> None:
    with pytest.raises(ValueError, match="two classes or more"):
        prompt_of(CLASSES[:1], called_right=False)


def rows() -> list[dict[str, Any]]:
    """Right and wrong answers of one, two or three words. Every third answer is the same as another one."""
    found = [
        {**row, "prediction": "x" * (3 + 3 * (place % 4)) + " y" * (place % 3)} for place, row in enumerate(rows_of(36))
    ]
    return [{**row, "question": "which?", "references": ["zz"], "label": place % 2} for place, row in enumerate(found)]


def test_the_judge_names_classes_where_rules_leave_them_open(command: Command, tmp_path: Path) -> None:
    judge = Judge()
    file, out, page = write_rows(tmp_path / "rows.jsonl", rows()), tmp_path / "f.json", tmp_path / "page.html"
    options = ("--metrics", "judge_verdict,exact_match", "--resamples", "100", "--json", out, "--html", page)
    plain = command("agree", file, *options, stub=judge.stub())
    assert (plain.exit_code, judge.asked) == (0, []), plain.output
    done = command("agree", file, *options, "--error-classes", "judge", "--all-tables", stub=judge.stub())
    assert done.exit_code == 0, done.output
    wrong = json.loads(out.read_text())["wrong_verdicts"]
    open_ones = [each for each in wrong if not each["error_class"]]
    assert {each["metric"] for each in open_ones} == {"judge_verdict"}
    assert all(each["judged_class"] in ERROR_CLASSES for each in open_ones)
    assert all(not each["judged_class"] for each in wrong if each["error_class"])
    misses = [each for each in wrong if not each["called_right"] and not each["failure_mode"]]
    assert misses
    assert all(each["judged_mode"] in FAILURE_MODES for each in misses)
    assert len(judge.asked) == len(set(judge.asked)) < len(open_ones) + len(misses)
    questions = len(open_ones) + len(misses)
    said = " ".join(done.stderr.split())
    assert f"asking the judge for the classes of errors: {len(judge.asked)} calls for {questions} questions" in said
    assert "Judge's class where no rule can tell" in done.stdout
    assert "Judge's failure mode where no rule can tell" in done.stdout
    assert "(by the judge)" in page.read_text()


def test_a_judge_without_an_answer_leaves_the_class_open(command: Command, tmp_path: Path) -> None:
    judge = Judge(fails=True)
    file, out = write_rows(tmp_path / "rows.jsonl", rows()), tmp_path / "f.json"
    options = ("--metrics", "judge_verdict", "--resamples", "100", "--json", out, "--error-classes", "judge", "--quiet")
    done = command("bench", "knvqa", file, *options, stub=judge.stub())
    assert done.exit_code == 0, done.output
    assert judge.asked
    assert "the judge named no class for " in done.stderr
    assert "UNPARSABLE" in done.stderr
    assert {each["judged_class"] for each in json.loads(out.read_text())["wrong_verdicts"]} == {""}


def test_a_judge_that_is_not_there_is_refused_before_rows_are_scored(command: Command, tmp_path: Path) -> None:
    scored: list[str] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if "error_class" in request.metrics[0].lave.prompt:
            raise NotReady("the judge is not built")
        scored.extend(item.id for item in request.items)
        return answer(request)

    options = ("--metrics", "exact_match", "--resamples", "100", "--error-classes", "judge")
    done = command("agree", write_rows(tmp_path / "rows.jsonl", rows()), *options, stub=StubTransport(score))
    assert done.exit_code != 0
    assert "the judge is not built" in done.stderr
    assert scored == []
