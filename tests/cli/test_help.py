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
from gradewire_cli.options.help import Command, group_of, is_rare

MOST_SHOWN = 13
"""Options that --help shows, without those of the help itself."""
MOST_SHOWN_BY = {"serve": 14}
ONE_TEXT = ("--model-repository", "--judge-repository", "--rewards-")
"""Beginnings of the flags whose whole text is the same in all commands, not only its first sentence."""
MOST_CHARACTERS = 72
"""Characters of a help text's first sentence, which then mostly fits beside its flag into 100 columns."""
HEADLESS = {"What", "Whether", "Who", "Whom", "How", "Where", "Why", "Of", "It", "Its", "As"}
_SENTENCE = re.compile(r"(?:e\.g\.|[^.:]|[.:](?! |$))+")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield all commands and groups by their paths."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


def options_of(command: click.Command) -> list[click.Option]:
    """Return the options of a command, without those of the help itself."""
    options = [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]
    return [each for each in options if not {"--help", "--help-all"} & {*each.opts}]


FOUND = dict(commands(gradewire))
GROUPS = {name: each for name, each in FOUND.items() if isinstance(each, click.Group)}
EVERY_COMMAND = {name: each for name, each in FOUND.items() if name not in GROUPS}
MOUNTED = tuple(f"{name} " for name, each in GROUPS.items() if isinstance(each, MountedGroup))
COMMANDS = {
    name: each for name, each in EVERY_COMMAND.items() if isinstance(each, Command) and not name.startswith(MOUNTED)
}
"""Our commands, without those of other programs."""


def shown(command: str, flag: str) -> str:
    done = CliRunner().invoke(gradewire, [*command.split(), flag], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.output


def flags_in(text: str) -> set[str]:
    """Return the flags that begin a line of a help's options."""
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)) - {"--help", "--help-all"}


def test_all_commands_are_found() -> None:
    assert {"score", "agree", "bench load", "serve", "gateway", "prompt show"} <= COMMANDS.keys()
    assert {"models build", "models list", "models train sfve", "triton up"} <= EVERY_COMMAND.keys()


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_option_has_a_group_and_a_text(name: str) -> None:
    for option in options_of(EVERY_COMMAND[name]):
        assert group_of(option) not in {"Options", "Help"}, option.opts
        assert option.help, option.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_short_text(name: str) -> None:
    for option in options_of(COMMANDS[name]):
        first = _first(option)
        assert len(first) <= MOST_CHARACTERS, f"{option.opts}: {first}"
        assert first.split()[0] not in HEADLESS, f"{option.opts}: {first}"


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_help_shows_the_everyday_options_and_help_all_every_one(name: str) -> None:
    options = options_of(EVERY_COMMAND[name])
    everyday = {option.opts[0] for option in options if not is_rare(option)}
    assert len(everyday) <= MOST_SHOWN_BY.get(name, MOST_SHOWN), sorted(everyday)
    assert flags_in(shown(name, "--help")) == everyday
    if any(map(is_rare, options)):
        assert flags_in(shown(name, "--help-all")) == {option.opts[0] for option in options}


@pytest.mark.parametrize("name", ["score", "compare", "bulk", "leaderboard"])
def test_help_names_the_options_that_errors_of_a_guarded_server_ask_for(name: str) -> None:
    text = shown(name, "--help")
    assert re.search(r"^  --token TOKEN .*GRADEWIRE_TOKEN", text, re.MULTILINE | re.DOTALL)
    assert "--tls-ca FILE" in text


def test_a_flag_means_the_same_in_all_commands() -> None:
    meanings: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in COMMANDS.items():
        for option in options_of(command):
            for flag in option.opts:
                meanings[flag][_first(option), option.is_flag].append(name)
    assert {flag: dict(found) for flag, found in meanings.items() if len(found) > 1} == {}


def test_flags_for_directories_and_rewards_have_one_text() -> None:
    texts: dict[str, set[str]] = defaultdict(set)
    for command in EVERY_COMMAND.values():
        for option in options_of(command):
            if option.opts[0].startswith(ONE_TEXT):
                texts[option.opts[0]].add(" ".join(str(option.help).split()))
    assert {"--model-repository", "--judge-repository", "--rewards-empty-value"} <= texts.keys()
    assert {flag: found for flag, found in texts.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", GROUPS)
def test_a_list_of_commands_has_whole_texts(name: str) -> None:
    text = shown(name, "--help")
    assert "..." not in text.replace("[ARGS]...", "")
    listed = re.findall(r"^  ([a-z-]+)  ", text.partition("\nCommands:")[2], re.MULTILINE)
    assert listed == GROUPS[name].list_commands(click.Context(GROUPS[name]))


@pytest.mark.parametrize("name", ["bench", "models", "prompt", "triton", "triton up"])
def test_examples_are_above_the_options(name: str) -> None:
    before, _, after = shown(name, "--help").partition("\nExamples:\n")
    assert f"  gradewire {name} " in after
    assert "--help" not in before


def test_every_text_belongs_to_an_option() -> None:
    texts = tomllib.loads((resources.files("gradewire_cli") / "options.toml").read_text("utf-8"))
    flags = {option.opts[0].removeprefix("--") for command in COMMANDS.values() for option in options_of(command)}
    assert texts.keys() <= flags


def _first(option: click.Option) -> str:
    """Return the first sentence, or what stands before its colon."""
    found = _SENTENCE.match(str(option.help))
    return "" if found is None else found[0]


@pytest.mark.parametrize(
    ("command", "metrics"),
    [
        ("bench accuracy", "smile,exact_match,easy_match,rouge_l,sbert"),
        ("bench flips", "correctness,smile"),
        ("bench knvqa", "lexical_match,vqa_accuracy,bertscore?with_question=true"),
    ],
)
def test_help_names_the_metrics_that_a_paper_has(command: str, metrics: str) -> None:
    assert f"[default:{metrics}]" in "".join(shown(command, "--help").split())
