import json
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from tests_frameworks.evaluation.rows import ANSWERS, ITEMS

from gradewire import InvalidRequest
from gradewire.integrations.evaluation.lm_eval import GradedAnswer, GradewireFilter

HEAD = """
task: pets
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{rows}"}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{target}"
"""
BY_FUNCTION = """
process_results: !function utils.process_results
metric_list:
  - {metric: gradewire, aggregation: nanmean, higher_is_better: true}
  - {metric: gradewire_right, aggregation: mean, higher_is_better: true}
"""
UTILS = """
from gradewire.integrations.evaluation.lm_eval import results_function

process_results = results_function(question="question", references="answers")
"""
BY_METRIC = """
metric_list:
  - {metric: gradewire, gradewire_metric: exact_match}
"""
FILTERS = """
filter_list:
  - name: graded
    filter:
      - function: take_first
      - {function: gradewire, references: answers}
"""


class TableModel(LM):
    """Answers from a table."""

    def generate_until(self, requests: list[Instance], **_: Any) -> list[str]:
        return [ANSWERS[request.args[0]] for request in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"question": item.question, "answers": list(item.references), "id": at} for at, item in enumerate(ITEMS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "utils.py").write_text(UTILS)
    return tmp_path


def run(folder: Path, task: str, target: str = "{{answers[0]}}") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (folder / "pets.yaml").write_text(HEAD.format(rows=folder / "rows.jsonl", target=target) + task)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    result = simple_evaluate(model=TableModel(), tasks=["pets"], task_manager=manager, bootstrap_iters=0)
    return result["results"]["pets"], result["samples"]["pets"]


def test_process_results_gives_the_servers_scores(folder: Path, expected: list[Any]) -> None:
    results, (right, wrong, empty) = run(folder, BY_FUNCTION)

    assert [right["gradewire"], wrong["gradewire"]] == pytest.approx(expected[:2], abs=2e-4)
    assert "gradewire" not in empty
    assert results["gradewire,none"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)
    assert results["gradewire_right,none"] == 0.5


def test_the_filter_grades_all_in_one_call_and_leaves_the_answers(
    folder: Path, expected: list[Any], monkeypatch: pytest.MonkeyPatch, nobody: str
) -> None:
    calls = []
    apply = GradewireFilter.apply

    def once(self: GradewireFilter, resps: Any, docs: Any) -> list[GradedAnswer]:
        graded = apply(self, resps, docs)
        calls.append(len(graded))
        # What follows must not ask again.
        monkeypatch.setenv("GRADEWIRE_SERVER", nobody)
        return graded

    monkeypatch.setattr(GradewireFilter, "apply", once)
    results, samples = run(folder, BY_FUNCTION + FILTERS)

    assert calls == [len(ITEMS)]
    assert [sample["filtered_resps"][0] for sample in samples] == [item.prediction for item in ITEMS]
    assert results["gradewire,graded"] == pytest.approx(sum(expected[:2]) / 2, abs=2e-4)


def test_the_registered_metric_grades_against_the_target(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"question": item.question, "answers": ["It is a small cat."]}) + "\n" for item in ITEMS)
    )
    results, samples = run(folder, BY_METRIC)

    assert [sample.get("gradewire") for sample in samples] == [1.0, 0.0, None]
    assert results["gradewire,none"] == 0.5


def test_several_targets_are_refused_by_the_metric_instead_of_counting_as_1(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="several targets"):
        run(folder, BY_METRIC, target="{{answers}}")


def test_a_field_that_documents_lack_is_named(folder: Path) -> None:
    (folder / "utils.py").write_text(UTILS.replace('"answers"', '"golds"'))

    with pytest.raises(InvalidRequest, match="no field 'golds'"):
        run(folder, BY_FUNCTION)


def test_without_a_server_no_document_has_a_value(folder: Path, nobody: str) -> None:
    (folder / "utils.py").write_text(UTILS.replace('"answers"', f'"answers", address="{nobody}", deadline_s=0.3'))

    results, samples = run(folder, BY_FUNCTION)

    assert not any(name.startswith("gradewire") for name in (*results, *samples[0]))
    assert len(samples) == len(ITEMS)
