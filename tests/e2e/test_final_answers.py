"""`answer=final` over a real socket, alone and in a stream, in the process, and from the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.servers.server_process import ServerProcess

from gradewire import Client, InvalidRequest, Scorer, Status, VqaParts
from gradewire_cli.group import gradewire

METRICS = ["exact_match", "easy_match", "lexical_match", "value_match", "vqa_accuracy", "soft_vqa_accuracy"]
METRICS += ["rouge_l", "bleu", "cider"]
FINAL = [*(f"{name}?answer=final" for name in METRICS), "meteor?answer=final&synonyms=none"]
# By completion: the answer that it asserts in the end; "" if it asserts none.
COMPLETIONS = {
    r"<think>1911? No.</think>The ship sank in \boxed{1912}.": "1912",
    "Zuerst dachte ich an 1911. Die Antwort ist 1912.": "1912",
    "不是1911年。答案是1912。": "1912",
    '{"thoughts": "after 1911", "answer": "15 April 1912"}': "15 April 1912",
    "Answer: 1911. Wait, that is wrong. Answer: 1912": "1912",
    "<think>The ship sank in 1912, or": "",
}
REFERENCES = ["1912", "in 1912", "15 April 1912"]


def rows(predictions: list[str]) -> list[dict[str, object]]:
    """A question of its own for each, since cider weighs words by the questions that have them."""
    return [
        {"question": f"When did ship {number} sink?", "references": [*REFERENCES, f"ship {number}"], "prediction": each}
        for number, each in enumerate(predictions)
    ]


@pytest.mark.parametrize("where", ["socket", "process"])
def test_a_completion_gets_what_its_final_answer_alone_gets(
    where: str, server: ServerProcess, minilm: Path, tmp_path: Path
) -> None:
    scoring = (
        Client(server.address, deadline_s=60)
        if where == "socket"
        else Scorer.embedded(model_repository=minilm, disk_directory=tmp_path / "store", judge_backend="none")
    )
    with scoring:
        found = scoring.score(rows([*COMPLETIONS]), FINAL)
        alone = scoring.score(rows([*COMPLETIONS.values()]), [line.replace("final", "whole") for line in FINAL])
        for completion, answer, item, expected in zip(COMPLETIONS, COMPLETIONS.values(), found, alone, strict=True):
            for metric, result in item.scores.items():
                assert result.provenance is not None
                assert "answer=final" in result.provenance.line, metric
                if answer:
                    same = expected.scores[metric.replace("final", "whole")]
                    assert result.status is Status.OK, (metric, completion, result.message)
                    assert (result.score, result.correct, result.parts) == (same.score, same.correct, same.parts)
                else:
                    assert (result.score, result.status) == (None, Status.EMPTY_PREDICTION)
                    assert "no final answer, because the completion ends during the thinking" in result.message
        first = found[0].scores
        assert first["exact_match?answer=final"].score == 1.0
        assert isinstance(parts := first["vqa_accuracy?answer=final"].parts, VqaParts)
        assert parts.compared_prediction == "1912"
        whole = scoring.score(rows([*COMPLETIONS]), ["exact_match", "exact_match?answer=final"])
        assert [*whole.labels] == ["exact_match", "exact_match?answer=final"]
        assert {item.scores["exact_match"].score for item in whole} == {0.0}
        assert whole.provenance["exact_match"].line == "exact_match/1?abstention=recognised&answer=whole"


def test_a_stream_and_the_line_of_a_result_give_the_same(server: ServerProcess) -> None:
    with Client(server.address, deadline_s=60) as client:
        report = client.score(rows([*COMPLETIONS]), FINAL)
        chosen = [line for line in FINAL if "cider" not in line]
        streamed = sorted(client.score_stream(rows([*COMPLETIONS]), chosen), key=lambda item: item.index)
        again = client.score(rows([*COMPLETIONS]), {label: report.provenance[label].line for label in report.labels})
        for item, single, repeated in zip(report, streamed, again, strict=True):
            for metric, result in item.scores.items():
                expected = result.score, result.status, result.message
                others = [repeated.scores[metric], *([single.scores[metric]] if metric in single.scores else [])]
                assert [(each.score, each.status, each.message) for each in others] == [expected] * len(others), metric


@pytest.mark.parametrize("metric", FINAL)
def test_another_value_is_refused_with_the_known_ones(metric: str) -> None:
    wrong = metric.replace("answer=final", "answer=last")
    with (
        Client("127.0.0.1:1") as client,
        pytest.raises(InvalidRequest, match=r"has no answer 'last': use one of whole, final"),
    ):
        client.score(rows(["1912"]), wrong)


def test_the_command_names_it_in_rows_and_in_what_gives_the_same_again(server: ServerProcess, tmp_path: Path) -> None:
    file, out = tmp_path / "completions.jsonl", tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows([*COMPLETIONS])))
    arguments = ["score", file, "--server", server.address, "--metrics", "exact_match?answer=final", "--out", out]
    done = CliRunner().invoke(gradewire, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    (*found, unanswered) = [json.loads(line)["scores"].popitem()[1] for line in out.read_text().splitlines()]
    assert [each["score"] for each in found] == [1.0] * 5
    assert found[0]["line"] == "exact_match/1?abstention=recognised&answer=final"
    assert unanswered["status"] == "EMPTY_PREDICTION"
    assert "because the completion ends during the thinking" in unanswered["message"]
    assert "--metrics 'exact_match/1?abstention=recognised&answer=final'" in done.stderr
