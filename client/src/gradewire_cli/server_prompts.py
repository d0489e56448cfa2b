"""Show judges' prompts and their tokens with the server's code."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire_cli.problems import invalid_request
from gradewire_models.judges.catalog import default_judge
from gradewire_models.judges.repository import default_judge_repository
from gradewire_proto.v1 import judging_pb2, types_pb2
from gradewire_server import prompt_view
from gradewire_server.judges.remote.server import Question
from gradewire_server.metrics.prompts.library import PromptLibrary
from gradewire_server.metrics.prompts.parsing import read_prompt
from gradewire_server.metrics.prompts.prompt_file import PromptFile, Step, Variant
from gradewire_server.metrics.prompts.reading import described
from gradewire_server.metrics.prompts.template import PromptError
from gradewire_server.prompt_view import (
    JudgeMeter,
    JudgeTokenizer,
    PromptView,
    PromptViewError,
    RoundTokens,
    open_tokenizer,
)
from gradewire_server.requests.context import PromptDirectoryError, open_prompts
from gradewire_server.settings.judge import EmbeddedJudgeConfig, RemoteJudgeConfig
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError

__all__ = ["JudgeMeter", "JudgeTokenizer", "PromptView", "Question", "RoundTokens"]

_refused = partial(invalid_request, PromptError, PromptViewError, PromptDirectoryError, SettingsError)


def prompt_files() -> tuple[PromptFile, ...]:
    """Return all prompts; raise InvalidRequest if `judge_prompt_directory` cannot be read."""
    return _library().files()


def find_prompt_file(name: str) -> PromptFile:
    """Return the prompt file of a metric or of NAME/VERSION; raise InvalidRequest if the file does not exist."""
    files = prompt_files()
    known = {file.title: file for file in files} | {file.metric: file for file in reversed(files)}
    if name not in known:
        raise InvalidRequest(f"no prompt {name!r}. Choose one of {', '.join(file.title for file in files)}")
    return known[name]


def read_prompt_file(data: bytes, place: str) -> PromptFile:
    """Read and check a prompt file; raise InvalidRequest if it has an error."""
    with _refused(named=f"{place}: "):
        return read_prompt(data)


def summary(variant: Variant) -> str:
    """Return a variant's steps with their labels and, for a variant with one text, where the labels are read."""
    if variant.max_tokens:
        read = "; ".join(f"{step.name} ({_labels(step)}), {described(step.rule)}" for step in variant.steps)
        return f"a text (at most {variant.max_tokens} tokens), then {read}"
    return ", then ".join(
        f"{step.name} ({_labels(step) if step.labels else f'at most {step.max_tokens} tokens'})"
        for step in variant.steps
    )


def _labels(step: Step) -> str:
    shown = (f"{label}: {step.statuses[label].name}" if label in step.statuses else label for label in step.labels)
    return " / ".join(shown)


def view_prompt(spec: types_pb2.MetricSpec, row: types_pb2.Item | judging_pb2.Pair) -> PromptView:
    """Return the prompts that a judge gets for an item or pair; raise InvalidRequest if metric or row is invalid."""
    with _refused():
        return prompt_view.prompt_viewer(spec, _library())(row)


def prompt_viewer(
    spec: types_pb2.MetricSpec,
) -> Callable[[types_pb2.Item | judging_pb2.Pair], PromptView | None]:
    """Return a function that maps an item or pair to its view, or to None if the row is invalid.

    Raises:
        InvalidRequest: The metric is invalid.
    """
    with _refused():
        view = prompt_view.prompt_viewer(spec, _library())

    def viewed(row: types_pb2.Item | judging_pb2.Pair) -> PromptView | None:
        try:
            return view(row)
        except PromptViewError:
            return None

    return viewed


def judge_tokenizer(name: str) -> JudgeTokenizer:
    """Return a judge's tokenizer ("" means the default judge); raise InvalidRequest if the files are damaged."""
    engine = _settings().engine
    judge = engine.judge
    config = judge.embedded or EmbeddedJudgeConfig(default_judge_repository(engine.model_repository))
    with _refused():
        return open_tokenizer(config, name or judge.default or default_judge().name)


def round_tokens(tokenizer: JudgeTokenizer, asked: Question) -> RoundTokens | None:
    """Return a round's tokens, or None without a tokenizer; raise InvalidRequest if they exceed the judge's limit."""
    with _refused():
        return tokenizer.tokens(asked)


def judge_meter(name: str, *, elsewhere: bool, settings: Mapping[str, Any] = MappingProxyType({})) -> JudgeMeter:
    """Return a meter that estimates a judge's tokens; raise InvalidRequest if the judge's files are damaged."""
    if not elsewhere:
        return JudgeMeter(judge_tokenizer(name))
    judge = _settings(settings).engine.judge
    return JudgeMeter(JudgeTokenizer(""), judge.remote or RemoteJudgeConfig(), decides=judge.backend == "decisions")


def _library() -> PromptLibrary:
    directory = _settings().judge_prompt_directory
    with _refused():
        return open_prompts(directory and directory.expanduser())


def _settings(values: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    with _refused():
        return Settings.load(**values)
