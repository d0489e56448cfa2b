"""Reward posts of a real server's gateway, and settings that could not answer them."""

import httpx2
import pytest
from click.testing import CliRunner
from tests.support.servers.server_process import ServerProcess

from gradewire_cli.group import gradewire

POST = {"prompt": "What sleeps?", "response": "<think>A dog?</think>A small cat.", "label": "cat"}
GATEWAY = ("gateway", "--server", "127.0.0.1:1")
SERVE = ("serve", "--port", "0", "--http-port", "0", "--http-api-port", "0")


def test_a_post_is_scored_with_the_token_of_its_url(http_server: ServerProcess) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        with_token = http_server.api.replace("http://", "http://any:right@")
        reply = client.post(f"{with_token}/slime/reward", json=POST)
        assert reply.status_code == 200
        assert 0 < reply.json() < 1
        assert client.post(f"{http_server.api}/slime/reward", json=POST).status_code == 401
        narrow = client.post(f"{http_server.api}/slime/reward", json=POST, headers={"authorization": "Bearer narrow"})
        assert (narrow.status_code, narrow.json()["code"]) == (403, "permission_denied"), narrow.text


@pytest.mark.parametrize("command", [GATEWAY, SERVE], ids=["gateway", "serve"])
@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--rewards-metric", "no_such", "no_such"),
        ("--rewards-metric", "smile,no_such", "no_such"),
        ("--rewards-judge-metric", "nobody", "nobody"),
        ("--rewards-max-answer-characters", "0", "rewards_max_answer_characters"),
        ("--rewards-policy", "value", "rewards_value=None"),
        ("--rewards-value", "1", "rewards_value=1.0"),
        ("--rewards-max-failure-rate", "2", "rewards_max_failure_rate"),
        ("--rewards-deadline-s", "0", "rewards_deadline_s"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_the_start(
    command: tuple[str, ...], option: str, value: str, named: str
) -> None:
    done = CliRunner().invoke(gradewire, [*command, option, value], catch_exceptions=True)
    told = f"{done.output}{done.exception}"
    assert done.exit_code != 0
    assert "rewards" in told
    assert named in (told.replace("-", "_") if command is GATEWAY else told)
