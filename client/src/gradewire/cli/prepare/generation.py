"""Options of `gradewire prepare` that have a judge write synthetic answers, and the file that they are written to."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gradewire.cli.input.files import InputFile
from gradewire.cli.options.group import INPUT_FILE, OUTPUT_FILE, option_group
from gradewire.cli.options.prompts import read_prompt_file
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.problems import InputError
from gradewire.preparation import PrepareProgress, SyntheticGeneration

_METRIC = "synthetic"
# Formats whose unreadable rows are pieces of JSON, or are meant to be.


generate_options = option_group(
    click.option(
        "--generate",
        is_flag=True,
        help="Have a judge write a synthetic answer for each reference that has none: one sentence that "
        "answers the question with the reference in it. The set keeps them.",
    ),
    click.option("--judge", metavar="NAME[@DIGEST]", help="Judge that writes; default: the server's default judge."),
    click.option(
        "--prompt",
        metavar="FILE",
        type=INPUT_FILE,
        help="Prompt file of the metric synthetic; default: the server's.",
    ),
    click.option(
        "--out",
        type=OUTPUT_FILE,
        help="Write the rows of FILE with their synthetic answers here (JSONL), to be read, corrected and used "
        "with --synthetic inline.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace --out."),
)


def generation_of(options: Mapping[str, Any]) -> SyntheticGeneration | None:
    """Who writes synthetic answers, as the options of `generate_options` say; None: nobody does.

    Raises:
        click.UsageError: One needs another one.
        InputError: The prompt file is none, or one of another metric.
    """
    judge, prompt, out = options["judge"], options["prompt"], options["out"]
    if not options["generate"]:
        given = {"--judge": judge, "--prompt": prompt, "--out": out, "--overwrite": options["overwrite"]}
        for name, value in given.items():
            if value:
                raise click.UsageError(f"{name} is for synthetic answers: give --generate with it")
        return None
    if options["overwrite"] and out is None:
        raise click.UsageError("--overwrite needs --out FILE")
    text = ""
    if prompt is not None:
        given_prompt = read_prompt_file(prompt).prompt
        if given_prompt.metric != _METRIC:
            raise InputError(f"--prompt {prompt}: it is a prompt of {given_prompt.metric}, not of {_METRIC}")
        text = given_prompt.text
    return SyntheticGeneration(judge=judge or "", prompt=text)


def check_output(out: Path, source: InputFile, *, overwrite: bool) -> None:
    """Refuses an output that cannot be written, before any work.

    Raises:
        InputError: It is there already, or is the input, or the input cannot be read twice.
    """
    if source.is_stdin:
        raise InputError("--out: the rows are read twice, and standard input cannot be: give a file")
    check_outputs([("--out", out), ("--out", _part_of(out))], source.named_paths)
    if out.exists() and not overwrite:
        raise InputError(f"{out} is there already: give --overwrite, or another file")


def sentences_so_far(step: PrepareProgress, seconds: float) -> str:
    """What a progress line says of sentences."""
    rate = step.synthetic_answers_generated / max(seconds, 1e-9)
    line = f"{step.synthetic_answers_generated} sentences, {rate:.2g}/s"
    fallbacks = step.synthetic_answers_fallback
    return f"{line}, {fallbacks} fallback{'s' * (fallbacks != 1)}" if fallbacks else line


def write_rows(path: Path, source: InputFile, answers: Mapping[int, tuple[str | None, ...]]) -> str:
    """Writes the rows of a file with their synthetic answers, all or none.

    Args:
        path: Replaced when all is written.
        source: Read again, row by row.
        answers: By row number; a row without one, or with a gap, is written as it was, and so is a line that is no row.

    Returns:
        How many rows were written, and what became of the others, for people.

    Raises:
        InputError: It cannot be written.
    """
    column = source.options.columns.get("synthetic_answers", "synthetic_answers")
    part = _part_of(path)
    whole = unread = left_out = rows = 0
    try:
        with part.open("wb") as stream:
            for record in source.records():
                found = answers.get(record.index, ())
                if record.fields is not None:
                    complete = bool(found) and None not in found
                    fields = {**record.fields, column: list(found)} if complete else record.fields
                    line = json.dumps(fields, ensure_ascii=False, default=str).encode()
                    whole += complete
                elif source.is_json:
                    line = record.raw.rstrip("\r\n").encode(errors="surrogateescape")
                    unread += 1
                else:
                    left_out += 1
                    continue
                stream.write(line + b"\n")
                rows += 1
        part.replace(path)
    except (OSError, UnicodeEncodeError) as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else "a text in it is no Unicode"
        raise InputError(
            f"{path}: {reason or error}; the set holds the answers, the same command writes them"
        ) from error
    told = [f"{rows} rows, {whole} of them with synthetic answers"]
    if unread:
        told.append(f"{unread} as they were because they cannot be read")
    if left_out:
        # Rows of a table: no line of JSON can be made of them.
        told.append(f"{left_out} rows of the input left out because they cannot be read")
    return "; ".join(told)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")
