"""`gradewire prompt`: show judges' prompts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire.items import ItemProblem, encode_item
from gradewire.metrics import COMPARISON_TYPES, Compare
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.options import check_comparison
from gradewire.pairs import encode_pair
from gradewire_cli.help_texts import CommandGroup
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.options.common import INPUT_FILE
from gradewire_cli.options.help import Command, option, stacked
from gradewire_cli.options.metrics import GivenPrompt, read_bytes, read_prompt_file, with_prompts
from gradewire_cli.problems import InputError, named_errors, one_line_errors
from gradewire_cli.prompt_starters import STARTER_NAME, STARTERS, starter
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.input_file import ALL_COLUMNS, InputFile, input_file, input_options
from gradewire_cli.rows.row import Row, item_with_pictures, value_of
from gradewire_proto.wire_rules import DIGEST_PREFIX_CHARS, LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradewire.metrics.base import Metric
    from gradewire_cli.server_prompts import JudgeTokenizer, PromptView, Question, RoundTokens
    from gradewire_proto.v1 import judging_pb2, types_pb2


_ADDRESS_CHARACTERS = 100
_MAX_ITEM_BYTES = 16 * 1024 * 1024


def shown_rounds(
    view: PromptView,
    tokenizer: JudgeTokenizer,
    count: Callable[[JudgeTokenizer, Question], RoundTokens | None],
    *,
    place: str,
    ids: bool,
) -> Iterator[str]:
    """Yield the output lines for one row. `count` counts a round's tokens, and `ids` adds the token IDs."""
    yield f"=== {view.title}@{view.digest[:DIGEST_PREFIX_CHARS]}, {place}"
    if view.without_judge:
        yield f"=== {view.without_judge}"
        return
    yield f"=== {tokenizer.note}"
    if view.masked:
        yield '=== MASKED: "[...]" replaces words of the answer that claim it is right'
    before: Question | None = None
    for asked in view.rounds:
        tokens = count(tokenizer, asked)
        fixed, item = tokenizer.text(asked, tokens)
        if before is None or before.prompt.fixed != asked.prompt.fixed:
            yield _heading("shared by all items of this kind", tokens.fixed if tokens else None, ids=ids)
            yield fixed.removesuffix("\n")
        cut = ", end of the answer cut off" if tokens and tokens.truncated else ""
        for number, image in enumerate(asked.prompt.images, 1):
            shown = f"{len(image.data)} bytes" if image.data else image.uri[:_ADDRESS_CHARACTERS]
            yield f"=== picture {number}, sent before the item's text, tokens not counted: {shown}"
        yield _heading(f"the item{cut}", tokens.item if tokens else None, ids=ids)
        yield item
        yield f"=== {_answer(asked, tokens, view.reading)}"
        before = asked


def _heading(what: str, tokens: Sequence[int] | None, *, ids: bool) -> str:
    if tokens is None:
        return f"=== {what}"
    return f"=== {what}: {len(tokens)} tokens" + (f" {' '.join(map(str, tokens))}" if ids else "")


def _answer(asked: Question, tokens: RoundTokens | None, reading: str) -> str:
    if not asked.options:
        if reading:
            stops = f", up to {' or '.join(map(repr, asked.stop))}" if asked.stop else ""
            return f"the judge writes a text of at most {asked.max_tokens} tokens{stops}. Read from it: {reading}"
        return f"the judge continues to the end of the line, at most {asked.max_tokens} tokens"
    labels = " ".join(asked.options)
    read = f" (probabilities of the tokens {' '.join(map(str, tokens.labels))})" if tokens else ""
    return f"the judge continues with one of: {labels}{read}"


@click.group("prompt", cls=CommandGroup, examples="prompt")
def prompt_command() -> None:
    """Show the prompts that judges see, and check your own prompts."""


@prompt_command.command("list", short_help="List the available prompts.")
def list_command() -> None:
    """List the available prompts: NAME/VERSION, digest, description, variants and demonstrations."""
    with one_line_errors():
        files = server_module("gradewire_cli.server_prompts").prompt_files()
    width = max(len(file.title) for file in files)
    for file in files:
        shown = ", ".join(f"{len(each)} {kind}" for kind, each in file.demonstrations.items()) or "none"
        click.echo(f"{file.title:<{width}}  {file.digest[:DIGEST_PREFIX_CHARS]}  {file.description}")
        click.echo(f"{'':<{width}}  {', '.join(file.variants)}; demonstrations: {shown}")


@prompt_command.command("export", short_help="Print a prompt file as a template for your own prompt.")
@click.argument("name")
def export_command(name: str) -> None:
    """Print the prompt file of a metric (lave) or of NAME/VERSION, as a template for your own prompt."""
    with one_line_errors():
        file = server_module("gradewire_cli.server_prompts").find_prompt_file(name)
    sys.stdout.buffer.write(file.text.encode())
    sys.stdout.buffer.flush()


@prompt_command.command("new", cls=Command, short_help="Write a commented prompt file in a verifier's form.")
@click.argument("name")
@option("--like", type=click.Choice(tuple(STARTERS)), required=True)
def new_command(name: str, like: str) -> None:
    """Write the prompt file NAME.toml with comments, for a prompt of your own or a published one."""
    if STARTER_NAME.fullmatch(name) is None:
        raise click.UsageError(f"{name!r}: use lower-case letters, digits, _ and -, beginning with a letter")
    path = Path(f"{name}.toml")
    with one_line_errors(), named_errors(path), path.open("x", encoding="utf-8") as file:
        file.write(starter(name, like))
    click.echo(f"wrote {path} for {STARTERS[like]}. Edit it, then run: gradewire prompt check {path}")


@prompt_command.command("check")
@click.argument("file", type=INPUT_FILE)
def check_command(file: Path) -> None:
    """Check a prompt file and print a summary."""
    with one_line_errors():
        prompts = server_module("gradewire_cli.server_prompts")
        read = prompts.read_prompt_file(read_bytes(file), str(file))
    click.echo(f"{read.title} for {read.metric}, digest {read.digest}")
    if read.metric_lines:
        click.echo(f"request it with this file as {' or '.join(read.metric_lines)}")
    for name, variant in read.variants.items():
        click.echo(f"{name}: {prompts.summary(variant)}")
    for kind, shown in read.demonstrations.items():
        click.echo(f"demonstrations for {kind} questions: {len(shown)}")


@prompt_command.command("show", cls=Command, short_help="Print the prompt that a metric sends to a judge for one row.")
@click.argument("metric")
@input_options
@stacked(
    option("--row", "index", type=click.IntRange(min=0), default=0),
    option("--second-row", "second_index", type=click.IntRange(min=0)),
    option("--prompt", "prompt_path", type=INPUT_FILE),
    option("--judge", rare=False),
    option("--ids", is_flag=True),
)
def show_command(*, metric: str, prompt_path: Path | None, judge: str | None, ids: bool, **options: Any) -> None:
    """Print the exact prompt that METRIC (e.g. lave or lave?mode=rationale) sends to a judge for one row of FILE.

    METRIC compare needs two answers: a row with answer_a and answer_b, or a second row. Both orders are shown.

    The command sends nothing to a judge. It counts tokens if the judge is built on this machine. A placeholder
    replaces the text that a judge would write before its verdict.
    """
    with one_line_errors():
        asked = _metric(metric, [read_prompt_file(prompt_path)] if prompt_path else [], judge)
        index, second_index = options["index"], options["second_index"]
        pairs = isinstance(asked, Compare)
        if second_index is not None and not pairs:
            raise InputError(f"--second-row: {asked.name} grades one answer. Only compare reads two")
        source = input_file(options | {"keep_columns": ALL_COLUMNS}, needed=()) if pairs else input_file(options)
        row = _row(source, index)
        prompts = server_module("gradewire_cli.server_prompts")
        shows_images = bool(getattr(asked, "image", None))
        item, lack = item_with_pictures(row, source.folder if shows_images else None)
        if pairs:
            second = None if second_index is None else _row(source, second_index)
            message: types_pb2.Item | judging_pb2.Pair = _pair(source, row, item, second, images=shows_images)
        else:
            message = _message(row, item, images=shows_images)
        view = prompts.view_prompt(asked.to_spec(), message)
        named = str(getattr(asked, "model", None) or "").partition("@")[0]
        tokenizer = prompts.judge_tokenizer(named)
        place = f"{row.position} (id {row.id})" + (f", {lack}" if lack else "")
        for line in shown_rounds(view, tokenizer, prompts.round_tokens, place=place, ids=ids):
            click.echo(printable(line))


def _metric(line: str, prompts: list[GivenPrompt], judge: str | None) -> Metric:
    found = LINE.fullmatch(line.strip())
    if found is not None and found["name"] in COMPARISON_TYPES:
        (compare,) = with_prompts([check_comparison(line.strip(), judge)], prompts)
        return compare
    written = choose_metrics(line, MetricDefaults()).metrics
    metrics = choose_metrics(with_prompts(written, prompts), MetricDefaults(judge=judge)).metrics
    if len(metrics) != 1:
        raise InputError(f"{line}: name one metric only")
    return metrics[0]


def _row(source: InputFile, index: int) -> Row:
    rows = 0
    for row in source.open().rows:
        if row.index == index:
            if row.item is None:
                raise InputError(row.problem)
            return row
        rows += 1
    raise InputError(f"{source.name} has no row {index}. The file has {rows} rows, numbered from 0")


def _pair(
    source: InputFile, row: Row, item: Mapping[str, Any], second: Row | None, *, images: bool
) -> judging_pb2.Pair:
    """Return the pair in a row's columns answer_a and answer_b, or of two rows' answers to the first row's question."""
    if second is not None:
        answers = [item.get("prediction"), second.values.get("prediction")]
    else:
        answers = [value_of(row.kept_columns, source.options.names(name)) for name in ("answer_a", "answer_b")]
    if None in answers:
        raise InputError(
            f"{row.position} has no two answers. compare reads the columns answer_a and answer_b, or the predictions "
            "of --row and --second-row"
        )
    kept = ("id", "question", "references", "caption", "captions", "images")
    pair = {name: item[name] for name in kept if name in item}
    pair |= dict(zip(("answer_a", "answer_b"), map(str, answers), strict=True))
    message = encode_pair(row.index, pair, max_bytes=_MAX_ITEM_BYTES, images=images)
    if isinstance(message, ItemProblem):
        raise InputError(f"{row.position}: {message.message}")
    return message


def _message(row: Row, item: Mapping[str, Any], *, images: bool) -> types_pb2.Item:
    message = encode_item(row.index, item, max_bytes=_MAX_ITEM_BYTES, images=images)
    if isinstance(message, ItemProblem):
        raise InputError(f"{row.position}: {message.message}")
    return message
