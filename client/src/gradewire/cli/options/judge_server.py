"""The judge's own server, for scoring in this process: options in place of variables."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from gradewire.cli.options.group import option_group
from gradewire.cli.problems import InputError

BACKENDS: Final = ("openai", "decisions")
_CONVENTIONAL_NAME = re.compile(r"[A-Z]+(?:_[A-Z]+)+")

judge_server_options = option_group(
    click.option(
        "--judge-url",
        metavar="URL",
        help="Ask the judge behind this server (http://HOST:PORT/v1), in place of one on this machine.",
    ),
    click.option(
        "--judge-backend",
        type=click.Choice(BACKENDS),
        help=f"What is behind --judge-url: {BACKENDS[0]} (default), an OpenAI-compatible server; {BACKENDS[1]}, a "
        "decision model (/v1/systemone, /v1/decisions).",
    ),
    click.option(
        "--judge-key-env", metavar="VARIABLE", help="Variable that holds the API key for --judge-url; never the key."
    ),
    click.option("--judge-remote-model", metavar="NAME", help="Name of the model behind --judge-url."),
    click.option(
        "--judge-reasoning-tokens",
        type=click.IntRange(min=0),
        metavar="TOKENS",
        help="What the model behind --judge-url may think before each answer; default: as "
        "GRADEWIRE_JUDGE_REASONING_TOKENS says, else 0.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeServer:
    """Where the judge is asked.

    Attributes:
        url: Base URL.
        model: Name of the model there; "" where it has one alone.
        key_variable: Environment variable with the API key; "" for none.
        reasoning_tokens: What the model may think before each answer; None: as the settings say.
        backend: Kind of server, one of BACKENDS.
    """

    url: str
    model: str
    key_variable: str
    reasoning_tokens: int | None = None
    backend: str = BACKENDS[0]

    def settings(self) -> dict[str, Any]:
        """Settings of the engine in this process.

        Raises:
            InputError: The variable with the key is not set, as on another machine than that of the command.
        """
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise InputError(
                f"--judge-key-env {self.key_variable}: it is not set on {socket.gethostname()}: start Ray's workers "
                "with it on every machine"
            )
        settings: dict[str, Any] = {
            "judge_backend": self.backend,
            "judge_url": self.url,
            "judge_remote_model": self.model,
        }
        if key:
            settings["judge_token"] = key
        if self.reasoning_tokens is not None:
            settings["judge_reasoning_tokens"] = self.reasoning_tokens
        return settings

    @property
    def arguments(self) -> list[str]:
        """The options as they are written; not the key."""
        given = {
            "--judge-url": self.url,
            "--judge-backend": "" if self.backend == BACKENDS[0] else self.backend,
            "--judge-remote-model": self.model,
            "--judge-key-env": self.key_variable,
            "--judge-reasoning-tokens": "" if self.reasoning_tokens is None else str(self.reasoning_tokens),
        }
        return [word for option, value in given.items() if value for word in (option, value)]


def judge_server_of(options: Mapping[str, Any]) -> JudgeServer | None:
    """Reads `judge_server_options`; None where they name no server.

    Raises:
        click.UsageError: One is given without --judge-url, two do not go together, or the variable is not set.
    """
    url, key, model = options["judge_url"], options["judge_key_env"] or "", options["judge_remote_model"] or ""
    thoughts, backend = options["judge_reasoning_tokens"], options["judge_backend"]
    if url is None:
        if key or model or thoughts is not None or backend is not None:
            raise click.UsageError(
                "--judge-key-env, --judge-remote-model, --judge-reasoning-tokens and --judge-backend are for "
                "--judge-url: give it too"
            )
        return None
    if backend == "decisions" and thoughts:
        raise click.UsageError(
            "--judge-reasoning-tokens is for --judge-backend openai: a decision model writes nothing, so leave it out"
        )
    if not model:
        raise click.UsageError("--judge-url needs --judge-remote-model NAME: the model's name on that server")
    if key and not os.environ.get(key):
        # Who gives the key itself must not find it in a log: only what no key looks like is repeated.
        named = f" {key}" if _CONVENTIONAL_NAME.fullmatch(key) else ""
        raise click.UsageError(
            f"--judge-key-env{named}: no variable of this name is set, or it is empty. "
            "--judge-key-env takes the name of a variable that holds the key, never the key itself: "
            "export JUDGE_KEY=…, then --judge-key-env JUDGE_KEY"
        )
    return JudgeServer(
        url=url, model=model, key_variable=key, reasoning_tokens=thoughts, backend=backend or BACKENDS[0]
    )
