"""lm-eval and lmms-eval, by their own commands, have a judge answer over the HTTP API."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests_frameworks.evaluation.serving import ROOT, serving

JUDGE = "smollm2-135m-instruct"
TOKEN = "right"  # noqa: S105 - of the test's own server
QUESTIONS = {"What is the capital of France?": "Paris", "Which animal barks?": "dog"}
LONGEST_TOKENS = 12
TASK = """
task: gw_chat
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
"""
LM_EVAL = f"""
generation_kwargs: {{until: ["\\n"], max_gen_toks: {LONGEST_TOKENS}}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
LMMS_EVAL = f"""
doc_to_visual: !function utils.no_picture
generation_kwargs: {{max_new_tokens: {LONGEST_TOKENS}, temperature: 0}}
process_results: !function utils.judged
metric_list: [{{metric: verdict, aggregation: !function utils.share_right, higher_is_better: true}}]
"""
LMMS_UTILS = """
from lmms_eval.llm_judge import ServerConfig, get_server

def no_picture(doc):
    return []

def judged(doc, results):
    judge = get_server("openai", ServerConfig(model_name="default", max_tokens=4, num_retries=1))
    said = judge.evaluate_binary(doc["question"], doc["answer"], results[0], output_format="yes/no")
    return {"verdict": {"answer": results[0], **said}}

def share_right(rows):
    return sum(bool(row["result"]) for row in rows) / len(rows)
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base address of the chat endpoint of a server with a token and a real judge."""
    directory = tmp_path_factory.mktemp("chat")
    (directory / "tokens.toml").write_text(f'[own]\ntoken = "{TOKEN}"\n')
    ask = "from tests.support.judges.smollm2 import smollm2_repository; print(smollm2_repository())"
    judges = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", ask], cwd=ROOT, check=True, capture_output=True, text=True
    )
    settings = {
        "http_api_port": 0,
        "judge_repository": judges.stdout.strip(),
        "judge_model": JUDGE,
        "auth_tokens_file": directory / "tokens.toml",
    }
    with serving(directory, **settings) as server:
        yield f"{server.api}/v1"


def ask(api: str, asked: str, **fields: Any) -> str:
    """What the judge says when nothing stands between."""
    body = {"messages": [{"role": "user", "content": asked}], "temperature": 0, **fields}
    headers = {"authorization": f"Bearer {TOKEN}"}
    reply = httpx.post(f"{api}/chat/completions", json=body, headers=headers, timeout=100, trust_env=False)
    said: str = reply.raise_for_status().json()["choices"][0]["message"]["content"]
    return said


def run(folder: Path, task: str, *command: str, **environment: str) -> tuple[str, list[dict[str, Any]]]:
    """Runs a harness to its end; what it wrote to its log, and the samples that it kept."""
    rows = [{"question": question, "answer": answer} for question, answer in QUESTIONS.items()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text(LMMS_UTILS)
    (folder / "gw_chat.yaml").write_text(TASK + task)
    options = (
        "--tasks",
        "gw_chat",
        "--include_path",
        str(folder),
        "--log_samples",
        "--output_path",
        str(folder / "out"),
    )
    done = subprocess.run(
        [sys.executable, *command, *options],
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": TOKEN, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    kept = [path.read_text(encoding="utf-8") for path in (folder / "out").rglob("*samples*.jsonl")]
    return done.stdout, [json.loads(line) for text in kept for line in text.splitlines()]


def lm_eval(folder: Path, api: str, task: str, **environment: str) -> tuple[str, list[dict[str, Any]]]:
    model = f"model=default,base_url={api}/chat/completions,num_concurrent=2,max_retries=1"
    command = ("-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args", model)
    return run(folder, task, *command, "--apply_chat_template", **environment)


def test_lm_eval_gets_the_judges_answers(api: str, tmp_path: Path) -> None:
    log, samples = lm_eval(tmp_path, api, LM_EVAL)

    expected = [ask(api, question, max_tokens=LONGEST_TOKENS, stop=["\n"]) for question in QUESTIONS]
    assert [sample["filtered_resps"] for sample in samples] == [[text] for text in expected], log
    assert all(expected)


def test_lm_eval_is_told_what_a_judge_cannot_do(api: str, tmp_path: Path) -> None:
    log, samples = lm_eval(tmp_path, api, LM_EVAL.replace("until:", "temperature: 0.7, until:"))

    assert not samples
    assert "temperature" in log
    assert "invalid_argument" in log, log


def test_lm_eval_needs_the_token(api: str, tmp_path: Path) -> None:
    log, samples = lm_eval(tmp_path, api, LM_EVAL, OPENAI_API_KEY="wrong")

    assert not samples
    assert "unauthenticated" in log, log


def test_lmms_eval_has_the_judge_answer_and_judge(api: str, tmp_path: Path) -> None:
    model = f"model=default,base_url={api},api_key={TOKEN},num_concurrent=2,max_retries=1"
    command = ("-m", "lmms_eval", "--model", "openai", "--model_args", model, "--batch_size", "1")
    log, samples = run(tmp_path, LMMS_EVAL, *command, OPENAI_API_URL=api)

    assert len(samples) == len(QUESTIONS), log
    for question, sample in zip(QUESTIONS, sorted(samples, key=lambda sample: sample["doc_id"]), strict=True):
        verdict = sample["verdict"]
        assert verdict["answer"] == ask(api, question, max_tokens=LONGEST_TOKENS)
        assert verdict["raw_response"] == ask(api, verdict["prompt"], max_tokens=4)
        assert verdict["model"] == JUDGE
