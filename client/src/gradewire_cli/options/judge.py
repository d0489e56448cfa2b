"""Options that choose a judge, its server, and the prices of its tokens."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from typing_extensions import override

from gradewire_cli.options.common import INPUT_FILE, FiniteRange, written_options
from gradewire_cli.options.help import option, stacked
from gradewire_cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RETRIES: Final = 2
"""Maximum number of retries for a row while the judge is busy."""
BACKENDS: Final = ("openai", "decisions")
_CONVENTIONAL_NAME: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_MILLION: Final = 1e6
_PRICE_COUNT: Final = 2

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeServer:
    """A judge on a remote server.

    Attributes:
        key_variable: Environment variable with the API key. "" means no key.
        reasoning_tokens: Maximum number of reasoning tokens before each answer. None means that the engine's settings
            apply.
    """

    url: str
    model: str
    key_variable: str
    reasoning_tokens: int | None = None
    backend: str = BACKENDS[0]

    def settings(self) -> dict[str, Any]:
        """Return settings for the engine in this process.

        Raises:
            InputError: The variable with the key is not set on this machine.
        """
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise InputError(
                f"--judge-key-env {self.key_variable}: this variable is not set on {socket.gethostname()}. Set it "
                "before you start Ray on each machine"
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
        """The options as command-line arguments, without the key itself."""
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
    """Read `judge_server_options`. Return None if they do not name a server.

    Raises:
        click.UsageError: An option is given without --judge-url, two options conflict, or the variable is not set.
    """
    url, key, model = options["judge_url"], options["judge_key_env"] or "", options["judge_remote_model"] or ""
    thoughts, backend = options["judge_reasoning_tokens"], options["judge_backend"]
    if url is None:
        if key or model or thoughts is not None or backend is not None:
            raise click.UsageError(
                "--judge-key-env, --judge-remote-model, --judge-reasoning-tokens and --judge-backend need "
                "--judge-url. Add --judge-url URL"
            )
        return None
    if backend == "decisions" and thoughts:
        raise click.UsageError(
            "--judge-reasoning-tokens needs --judge-backend openai, because a decision model writes no tokens"
        )
    if not model:
        raise click.UsageError("--judge-url needs --judge-remote-model NAME, the model's name on that server")
    if key and not os.environ.get(key):
        # The user may have given the key itself, and a key must not reach a log. So the message repeats the name only
        # if it cannot be a key.
        named = f" {key}" if _CONVENTIONAL_NAME.fullmatch(key) else ""
        raise click.UsageError(
            f"--judge-key-env{named}: the variable is not set, or it is empty. "
            "Give the name of the variable that contains the key, never the key itself: "
            "export JUDGE_KEY=…, then --judge-key-env JUDGE_KEY"
        )
    return JudgeServer(
        url=url, model=model, key_variable=key, reasoning_tokens=thoughts, backend=backend or BACKENDS[0]
    )


@dataclass(frozen=True, slots=True)
class JudgePrices:
    """Prices per million tokens that judges read and write, in any currency. None means an unknown price."""

    read: float | None = None
    written: float | None = None

    @property
    def are_known(self) -> bool:
        """True if the user gave prices."""
        return self.read is not None and self.written is not None

    def price(self, read: int, written: int) -> float | None:
        """Return the price of these numbers of tokens, or None if a price is unknown."""
        if self.read is None or self.written is None:
            return None
        return (read * self.read + written * self.written) / _MILLION

    def text(self, read: int, written: int, *, at_most: bool = False, estimated: bool = False) -> str:
        """Return the price, or the flags that are missing. `at_most` means that the token counts are upper bounds."""
        price = self.price(read, written)
        if price is None:
            return "price unknown (give --judge-prices, the prices of a million tokens read and written)"
        if estimated:
            return f"price about {price:.4g}, estimated"
        return f"price {'at most ' if at_most else ''}{price:.4g}"


class _Prices(click.ParamType[JudgePrices]):
    """Two prices with a comma between them."""

    name = "prices"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JudgePrices:
        parts = str(value).split(",")
        if len(parts) != _PRICE_COUNT:
            self.fail(f"{value!r} is not two prices with a comma between them, such as 0.15,0.60.", param, ctx)
        return JudgePrices(*(FiniteRange(min=0).convert(part.strip(), param, ctx) for part in parts))


prices_option = option("--judge-prices", type=_Prices(), envvar="GRADEWIRE_JUDGE_PRICES", show_envvar=True)


def prices_of(options: Mapping[str, Any]) -> JudgePrices:
    """Return the prices that `prices_option` contains."""
    return options["judge_prices"] or JudgePrices()
