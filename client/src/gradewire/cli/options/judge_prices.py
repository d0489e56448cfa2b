"""What a judge's tokens cost: options, and the price of a number of tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.options.group import option_group

if TYPE_CHECKING:
    from collections.abc import Mapping

_MILLION = 1e6
_FLAGS = ("--judge-input-price", "--judge-output-price")


@dataclass(frozen=True, slots=True)
class JudgePrices:
    """Prices of a million tokens, in any currency; None: not known.

    Attributes:
        read: Of those that the judge reads.
        written: Of those that it writes.
    """

    read: float | None = None
    written: float | None = None

    @property
    def known(self) -> bool:
        """Whether both are."""
        return self.read is not None and self.written is not None

    def text(self, read: int, written: int, *, at_most: bool = False, estimated: bool = False) -> str:
        """The price of these tokens, for people; says which flags are missing where it is not known.

        Args:
            read: Tokens that the judge reads.
            written: Tokens that it writes.
            at_most: Both are bounds.
            estimated: One of them is estimated, so that the price is no bound.
        """
        if self.read is None or self.written is None:
            given = (self.read, self.written)
            missing = [flag for flag, price in zip(_FLAGS, given, strict=True) if price is None]
            return f"price unknown (give {' and '.join(missing)}, for a million tokens)"
        price = (read * self.read + written * self.written) / _MILLION
        if estimated:
            return f"price about {price:.4g}, estimated"
        return f"price {'at most ' if at_most else ''}{price:.4g}"


price_options = option_group(
    *(
        click.option(
            flag,
            type=click.FloatRange(min=0),
            metavar="PRICE",
            envvar=f"GRADEWIRE_{flag[2:].replace('-', '_').upper()}",
            show_envvar=True,
            help=f"Price of a million tokens that a judge {what}, for the summary and --dry-run.",
        )
        for flag, what in zip(_FLAGS, ("reads", "writes"), strict=True)
    )
)


def prices_of(options: Mapping[str, Any]) -> JudgePrices:
    """Reads the options of `price_options`.

    Raises:
        click.UsageError: A price is no number.
    """
    prices = JudgePrices(options["judge_input_price"], options["judge_output_price"])
    for flag, price in zip(_FLAGS, (prices.read, prices.written), strict=True):
        if price is not None and not math.isfinite(price):
            raise click.UsageError(f"{flag} {price}: give a number, the price of a million tokens")
    return prices
