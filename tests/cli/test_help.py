"""The help of all commands: named groups, everyday options first, short texts, and one meaning for each flag."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import resources
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gradewire_cli.group import gradewire
from gradewire_cli.lazy_commands import MountedGroup
from gradewire_cli.options.help import Command, Option, group_of, is_rare

MOST_SHOWN = 16
"""Options that --help shows, without those of the help itself."""
MOST_CHARACTERS = 72
"""Characters of a help text's first sentence, which then mostly fits beside its flag into 100 columns."""
HEADLESS = {"What", "Whether", "Who", "Whom", "How", "Where", "Why", "Of", "It", "Its", "As"}
_SENTENCE = re.compile(r"(?:e\.g\.|[^.:]|[.:](?! |$))+")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, Command]]:
    """Yield our commands, without those of other programs."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if not isinstance(command, MountedGroup):
                yield from commands(command, f"{path}{name} ")
        elif isinstance(command, Command):
            yield f"{path}{name}", command


COMMANDS = dict(commands(gradewire))


def options_of(command: Command) -> list[Option]:
    """Return the options of a command, without those of the help itself."""
    return [each for each in command.get_params(click.Context(command)) if isinstance(each, Option)]


def shown(command: str, flag: str) -> str:
    done = CliRunner().invoke(gradewire, [*command.split(), flag], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.output


def flags_in(text: str) -> set[str]:
    """Return the flags that begin a line of a help's options."""
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)) - {"--help", "--help-all"}


def test_all_commands_are_found() -> None:
    assert {"score", "agree", "bench load", "serve", "gateway", "prompt show"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_group_and_a_short_text(name: str) -> None:
    for option in options_of(COMMANDS[name]):
        assert group_of(option) not in {"Options", "Help"}, option.opts
        assert option.help is not None, option.opts
        first = _first(option)
        assert len(first) <= MOST_CHARACTERS, f"{option.opts}: {first}"
        assert first.split()[0] not in HEADLESS, f"{option.opts}: {first}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_everyday_options_and_help_all_every_one(name: str) -> None:
    options = options_of(COMMANDS[name])
    everyday = {option.opts[0] for option in options if not is_rare(option)}
    assert len(everyday) <= MOST_SHOWN, sorted(everyday)
    assert flags_in(shown(name, "--help")) == everyday
    if any(map(is_rare, options)):
        assert flags_in(shown(name, "--help-all")) == {option.opts[0] for option in options}


def test_a_flag_means_the_same_in_all_commands() -> None:
    meanings: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in COMMANDS.items():
        for option in options_of(command):
            for flag in option.opts:
                meanings[flag][_first(option), option.is_flag].append(name)
    assert {flag: dict(found) for flag, found in meanings.items() if len(found) > 1} == {}


def test_every_text_belongs_to_an_option() -> None:
    texts = tomllib.loads((resources.files("gradewire_cli") / "options.toml").read_text("utf-8"))
    flags = {option.opts[0].removeprefix("--") for command in COMMANDS.values() for option in options_of(command)}
    assert texts.keys() <= flags


def _first(option: Option) -> str:
    """Return the first sentence, or what stands before its colon."""
    found = _SENTENCE.match(str(option.help))
    return "" if found is None else found[0]
