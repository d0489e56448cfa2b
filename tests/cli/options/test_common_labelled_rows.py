"""Options of labelled rows that several commands have are declared alike, and their help says the same."""

import click
import pytest

from gradewire_cli.agree.command import agree_command
from gradewire_cli.bench.accuracy import accuracy_command, knvqa_command
from gradewire_cli.calibrate.command import calibrate_command

# Encoder of whatever is scored against encoder of the fit; figures against what was fitted.
_OF_THEIR_OWN = frozenset({"model", "json_path"})
_SHARED = frozenset(
    {"where", "scores", "labels", "without_flags", "resamples", "seed", "quiet", "columns", "input_format", "server"}
)


def options_of(command: click.Command) -> dict[str, dict[str, object]]:
    """What each option is called, takes and says, but for its default."""
    found = {each.name or "": each.to_info_dict() for each in command.params}
    return {name: {key: told for key, told in info.items() if key != "default"} for name, info in found.items()}


@pytest.mark.parametrize("command", [calibrate_command, accuracy_command, knvqa_command])
def test_options_of_one_name_take_and_say_the_same_as_those_of_agree(command: click.Command) -> None:
    own, agree = options_of(command), options_of(agree_command)
    assert own.keys() & agree.keys() >= _SHARED
    for name in own.keys() & agree.keys() - _OF_THEIR_OWN - {"files"}:
        assert own[name] == agree[name]
        assert own[name]["help"]


@pytest.mark.parametrize(("command", "resamples"), [(calibrate_command, 2000), (agree_command, 5000)])
def test_each_command_has_its_own_number_of_draws(command: click.Command, resamples: int) -> None:
    defaults = {each.name: each.default for each in command.params}
    assert (defaults["resamples"], defaults["seed"]) == (resamples, 0)
