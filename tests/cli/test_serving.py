"""`gradewire gateway` has an option for each setting of reward posts."""

from dataclasses import fields

from tests.cli.test_help import COMMANDS, options_of

from gradewire_gateway.settings import RewardPostSettings


def test_every_reward_setting_has_an_option_and_no_option_has_none() -> None:
    prefix = "rewards_"
    names = {option.name or "" for option in options_of(COMMANDS["gateway"])}
    given = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert given == {field.name for field in fields(RewardPostSettings)}
