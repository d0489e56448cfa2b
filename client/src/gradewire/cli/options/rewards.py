"""How a gateway answers posts of frameworks for reinforcement learning: the options of `gradewire gateway`."""

from collections.abc import Mapping
from typing import Any

import click

from gradewire.cli.options.group import option_group
from gradewire.errors import InvalidRequest
from gradewire.rewards.shared import scorer_of

_PREFIX = "rewards_"

reward_options = option_group(
    click.option("--rewards-metric", default="smile", show_default=True, metavar="METRIC", help="Gives the reward."),
    click.option(
        "--rewards-reads",
        type=click.Choice(["score", "correct"]),
        default="score",
        show_default=True,
        help="What of the metric: its score, or its verdict as 1 or 0.",
    ),
    click.option(
        "--rewards-extraction",
        type=click.Choice(["auto", "boxed", "tagged", "phrase", "whole"]),
        default="auto",
        show_default=True,
        help="Where the final answer stands in a completion.",
    ),
    click.option(
        "--rewards-policy",
        type=click.Choice(["exclude", "raise", "hold", "value"]),
        default="exclude",
        show_default=True,
        help="What becomes of samples that could not be scored; never a 0 by itself.",
    ),
    click.option("--rewards-value", type=float, help="Their reward with the policy value, and with no other."),
    click.option("--rewards-empty-value", type=float, help="Reward of a completion without an answer; none if unset."),
    click.option("--rewards-deadline-s", type=float, default=60.0, show_default=True, help="Deadline of a post."),
    click.option("--rewards-hold-s", type=float, default=40.0, show_default=True, help="How long hold tries again."),
    click.option(
        "--rewards-max-failure-rate",
        type=float,
        default=1.0,
        show_default=True,
        help="Share of failures among a caller's last 512 rewards above which its posts fail; 1: never.",
    ),
    click.option(
        "--rewards-slime-key", default="", metavar="NAME", help="Name under which slime reads it (its --reward-key)."
    ),
)


def reward_settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say, by the names that the gateway's settings have; raises click.UsageError."""
    given = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
    try:
        scorer_of({name: value for name, value in given.items() if name != "slime_key"})
    except InvalidRequest as error:
        raise click.UsageError(f"--rewards-…: {error}") from error
    return given
