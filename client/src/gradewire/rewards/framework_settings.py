"""Settings that all framework adapters share: data columns, and one scorer per process for equal settings."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

from gradewire._columns import similar_columns
from gradewire.errors import InvalidRequest
from gradewire.rewards.answer import last_question
from gradewire.rewards.failure_notices import REFERENCE_NAMES, SURE_REFERENCE_NAMES
from gradewire.rewards.group import GroupReward
from gradewire.rewards.reward import FailureHandling
from gradewire.rewards.scorer import RewardScorer
from gradewire.transport import Endpoint, Transport

T = TypeVar("T")

_HOW_TO_NAME = "(TrlReward(references=…); elsewhere the setting reference_column)"


def reference_name(columns: Mapping[str, Any], chosen: str = "") -> str:
    """Return the name of the column with right answers.

    Raises:
        InvalidRequest: The chosen column does not exist, no column has a usual name, or several could be meant.
    """
    names = REFERENCE_NAMES if not chosen else (chosen,)
    found = similar_columns(names, columns) if not chosen else [name for name in names if name in columns]
    if not found:
        there = ", ".join(sorted(map(str, columns))) or "none"
        raise InvalidRequest(
            f"references: there is no column {' or '.join(names)}; the columns are: {there}. Name the column "
            f"{_HOW_TO_NAME}"
        )
    best = [name for name in found if name in similar_columns(SURE_REFERENCE_NAMES, columns)] or found
    if len(best) > 1:
        raise InvalidRequest(
            f"references: the columns {' and '.join(best)} could both hold the right answers: name one {_HOW_TO_NAME}"
        )
    return best[0]


def question_in(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the question in a prompt: the whole string, or the user's last message in a chat."""
    return prompt if isinstance(prompt, str) else last_question(prompt)


_FAILURES = tuple(field.name for field in fields(FailureHandling))
_VARIABLES = {"address": "GRADEWIRE_SERVER", "token": "GRADEWIRE_TOKEN"}
_SETTINGS = "GRADEWIRE_REWARD_SETTINGS"
_MOST_SCORERS = 32
_ADDRESS = "127.0.0.1:50051"


def shared_scorer(settings: Mapping[str, Any] | None = None, **defaults: Any) -> RewardScorer:
    """Return this process's scorer for these settings. The first call creates the scorer.

    Missing settings come from environment variables: GRADEWIRE_SERVER (the address), GRADEWIRE_TOKEN, and
    GRADEWIRE_REWARD_SETTINGS, a JSON object with any settings.

    Args:
        settings: Settings from a framework's configuration file. They are the arguments of `RewardScorer` (but
            `address` and `token` instead of `server`) and of `FailureHandling` (`policy`, `value`, …).
        **defaults: The adapter's defaults. Settings and environment variables override the defaults.

    Raises:
        InvalidRequest: A setting is wrong or unknown.
    """
    return _shared(_scorer, settings, defaults)


def shared_group_reward(settings: Mapping[str, Any] | None = None, **defaults: Any) -> GroupReward | None:
    """Return this process's `GroupReward` for these settings, or None if the settings have no comparison (`by`).

    The arguments are those of `shared_scorer`, and the settings are the arguments of `GroupReward`.

    Raises:
        InvalidRequest: A setting is wrong or unknown.
    """
    return _shared(_group_reward, settings, defaults) if "by" in _chosen(settings, defaults) else None


def _shared(make: Callable[[tuple[tuple[str, Any], ...]], T], settings: Mapping[str, Any] | None, defaults: Any) -> T:
    try:
        return make(tuple(sorted(_chosen(settings, defaults).items())))
    except TypeError as error:
        raise InvalidRequest(f"settings of a reward function: {error}") from None


def _chosen(settings: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    from_variables = {name: os.environ[variable] for name, variable in _VARIABLES.items() if os.environ.get(variable)}
    return {**defaults, **from_variables, **_settings_of_environment(), **(settings or {})}


def _settings_of_environment() -> dict[str, Any]:
    written = os.environ.get(_SETTINGS) or "{}"
    try:
        settings = json.loads(written)
    except ValueError as error:
        raise InvalidRequest(f"{_SETTINGS} is not JSON ({error}): {written[:80]!r}") from None
    if not isinstance(settings, dict):
        raise InvalidRequest(f'{_SETTINGS} is a {type(settings).__name__}: give an object, {{"metric": "correctness"}}')
    return settings


@lru_cache(_MOST_SCORERS)
def _scorer(settings: tuple[tuple[str, Any], ...]) -> RewardScorer:
    return scorer_of(dict(settings))


@lru_cache(_MOST_SCORERS)
def _group_reward(settings: tuple[tuple[str, Any], ...]) -> GroupReward:
    return GroupReward(**_arguments(dict(settings)))


def scorer_of(settings: Mapping[str, Any], transport: Transport | None = None) -> RewardScorer:
    """Return a new scorer with flat settings.

    Args:
        settings: The settings of `shared_scorer`.
        transport: The transport for the scorer's calls; None means a connection to the address.

    Raises:
        InvalidRequest: A setting is wrong.
        TypeError: A setting is unknown.
    """
    return RewardScorer(**_arguments(settings, transport))


def _arguments(settings: Mapping[str, Any], transport: Transport | None = None) -> dict[str, Any]:
    rest = dict(settings)
    transport = rest.pop("transport", transport)
    endpoint = {name: rest.pop(name) for name in ("address", "token", "tls") if name in rest}
    server = transport or Endpoint(**{"address": _ADDRESS, **endpoint})
    failures = {name: rest.pop(name) for name in _FAILURES if name in rest}
    return {**rest, "server": server, "failures": FailureHandling(**failures)}
