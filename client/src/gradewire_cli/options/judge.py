"""Options for judges: which one, its own server, and the prices of its tokens."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire_cli.options.common import INPUT_FILE, FiniteRange, written_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RETRIES: Final = 2
"""Times that a row is sent again which the judge could not take."""
BACKENDS: Final = ("openai", "decisions")
_CONVENTIONAL_NAME: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_MILLION: Final = 1e6
_PRICE_FLAGS: Final = ("--judge-input-price", "--judge-output-price")

judge_options = stacked(
    option("--judge"),
    option("--prompt", "prompts", type=INPUT_FILE, multiple=True),
    option("--retries", type=click.IntRange(min=0), default=_RETRIES),
)
judge_server_options = stacked(
    option("--judge-url"),
    option("--judge-remote-model"),
    option("--judge-key-env"),
    option("--judge-backend", type=click.Choice(BACKENDS)),
    option("--judge-reasoning-tokens", type=click.IntRange(min=0)),
)
price_options = stacked(
    *(
        option(
            flag,
            type=FiniteRange(min=0),
            envvar=f"GRADEWIRE_{flag[2:].replace('-', '_').upper()}",
            show_envvar=True,
        )
        for flag in _PRICE_FLAGS
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeServer:
    """The server behind which the judge is asked.

    Attributes:
        model: Name of the model there; "" where it has one alone.
        key_variable: Environment variable with the API key; "" for none.
        reasoning_tokens: Tokens that the model may think before each answer; None: as the settings say.
    """

    url: str
    model: str
    key_variable: str
    reasoning_tokens: int | None = None
    backend: str = BACKENDS[0]

    def settings(self) -> dict[str, Any]:
        """Return settings of the engine in this process.

        Raises:
            InputError: The variable with the key is not set, as on another machine than that of the command.
        """
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise InputError(
                f"--judge-key-env {self.key_variable}: it is not set on {socket.gethostname()}: start Ray's workers "
                "with it on every machine"
            )
        return {
            "judge_backend": self.backend,
            "judge_url": self.url,
            "judge_remote_model": self.model,
            **({"judge_token": key} if key else {}),
            **({} if self.reasoning_tokens is None else {"judge_reasoning_tokens": self.reasoning_tokens}),
        }

    @property
    def arguments(self) -> list[str]:
        """The options as they are written; not the key."""
        return written_options(
            {
                "--judge-url": self.url,
                "--judge-backend": "" if self.backend == BACKENDS[0] else self.backend,
                "--judge-remote-model": self.model,
                "--judge-key-env": self.key_variable,
                "--judge-reasoning-tokens": "" if self.reasoning_tokens is None else str(self.reasoning_tokens),
            }
        )


def judge_server_of(options: Mapping[str, Any]) -> JudgeServer | None:
    """Read `judge_server_options`; None where they name no server.

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
        # A key given by mistake must not reach a log: only a name that no key looks like is repeated.
        named = f" {key}" if _CONVENTIONAL_NAME.fullmatch(key) else ""
        raise click.UsageError(
            f"--judge-key-env{named}: no variable of this name is set, or it is empty. "
            "--judge-key-env takes the name of a variable that holds the key, never the key itself: "
            "export JUDGE_KEY=…, then --judge-key-env JUDGE_KEY"
        )
    return JudgeServer(
        url=url, model=model, key_variable=key, reasoning_tokens=thoughts, backend=backend or BACKENDS[0]
    )


@dataclass(frozen=True, slots=True)
class JudgePrices:
    """Prices of a million tokens that judges read and write, in any currency; None: not known."""

    read: float | None = None
    written: float | None = None

    @property
    def are_known(self) -> bool:
        """True if both prices are given."""
        return self.read is not None and self.written is not None

    def price(self, read: int, written: int) -> float | None:
        """Return the price of these tokens; None where it is not known."""
        if self.read is None or self.written is None:
            return None
        return (read * self.read + written * self.written) / _MILLION

    def text(self, read: int, written: int, *, at_most: bool = False, estimated: bool = False) -> str:
        """Return the price for users, "at most" where both numbers are bounds; where unknown, the missing flags."""
        price = self.price(read, written)
        if price is None:
            given = (self.read, self.written)
            missing = [flag for flag, each in zip(_PRICE_FLAGS, given, strict=True) if each is None]
            return f"price unknown (give {' and '.join(missing)}, for a million tokens)"
        if estimated:
            return f"price about {price:.4g}, estimated"
        return f"price {'at most ' if at_most else ''}{price:.4g}"


def prices_of(options: Mapping[str, Any]) -> JudgePrices:
    """Read `price_options`."""
    return JudgePrices(options["judge_input_price"], options["judge_output_price"])
