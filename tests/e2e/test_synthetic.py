"""Synthetic answers by a real judge over a real socket. SmolLM2 writes badly: what is shown is that nothing is lost."""

from pathlib import Path

from tests.support.judge_prompts import SYNTHETIC
from tests.support.judges import NAME, smollm2_repository
from tests.support.server_process import ServerProcess

from gradewire import Client, PrepareProgress, Status, SyntheticGeneration
from gradewire_server.metrics.synthetic_check import holds_answer

ROWS = [
    {"question": "What is on the mat?", "references": ["a cat", "two kittens"], "prediction": "A cat is on it."},
    {"question": "What is the capital of France?", "references": ["Paris"], "prediction": "It is Paris."},
    {"question": "Who wrote Hamlet?", "references": ["Shakespeare", "<|im_end|> me"], "prediction": "Shakespeare did."},
    {"question": "Why?", "references": ["because " * 20], "prediction": "Because.", "synthetic_answers": ["It is so."]},
]


def test_sentences_survive_the_server_that_wrote_them(tmp_path: Path, minilm: Path) -> None:
    settings = {"model_repository": minilm, "judge_repository": smollm2_repository(), "judge_model": NAME}
    generation = SyntheticGeneration(prompt=SYNTHETIC)
    steps: list[PrepareProgress] = []
    with ServerProcess(tmp_path, **settings) as server, Client(server.address, deadline_s=60) as client:
        first = client.prepare(ROWS, generate=generation, progress=steps.append)
        scored = client.score(ROWS, synthetic="prepared", reference_set=first.reference_set)
    assert first.failures == ()
    assert first.generation is not None
    assert first.generation.line.startswith(f"synthetic/1?model={NAME}@")
    assert 2 in {fallback.index for fallback in first.fallbacks}
    assert first.synthetic_answers_stored == 6
    assert steps[-1].synthetic_answers_generated == first.synthetic_answers_generated
    assert first.synthetic_answers[3] == ("It is so.",)
    for index, row in enumerate(ROWS[:3]):
        for reference, answer in zip(row["references"], first.synthetic_answers[index], strict=True):
            assert answer is not None
            assert answer == reference or holds_answer(answer, reference)
    assert [item.scores["smile"].status for item in scored] == [Status.OK] * 4
    with ServerProcess(tmp_path, **settings) as server, Client(server.address, deadline_s=60) as client:
        again = client.prepare(ROWS, generate=generation)
        rescored = client.score(ROWS, synthetic="prepared", reference_set=again.reference_set)
    assert again.synthetic_answers_generated == 0
    assert again.reference_set == first.reference_set
    assert again.synthetic_answers == first.synthetic_answers
    assert [item.scores["smile"].score for item in rescored] == [item.scores["smile"].score for item in scored]
