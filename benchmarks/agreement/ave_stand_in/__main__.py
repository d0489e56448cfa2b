"""Make a stand-in for the AVE benchmark, which `gradewire bench ave` reads, from labelled short answers.

Needs gradewire[server] and WordNet's files:

    .venv/bin/python -m benchmarks.agreement.ave_stand_in answers.jsonl --out standin.jsonl
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from benchmarks.agreement.ave_stand_in import LabelledAnswer, StandIn, WordForms, stand_in
from benchmarks.agreement.ave_stand_in.making import MAX_WORDS

from gradewire_cli.options.help import column_help
from gradewire_cli.problems import InputError
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.table_formats import write_text
from gradewire_cli.rows.input_file import input_file, input_options
from gradewire_server.lexicon import WordNet, usual_directory
from gradewire_server.settings.server import Settings

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from gradewire_cli.rows.row import Row


@click.command(
    "ave_stand_in",
    epilog=f"""{column_help()}
\b
Examples:
  python -m benchmarks.agreement.ave_stand_in evouna.jsonl --where model=fid --out standin.jsonl
  gradewire bench ave standin.jsonl --half b

Part 1 is an original row with a short prediction that does not match a reference exactly. Part 2 describes the
prediction in three sentences. Part 3 rewrites the references: a noun in singular or plural, a synonym, a verb in a
different tense, a different format of a date or number, or a person's name like in an index. References that have no
other form stay, and are counted. The same rows and seed give the same file.""",
)
@input_options
@click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Use only these rows. May be repeated.")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the stand-in to this file (JSONL).",
)
@click.option(
    "--max-words",
    type=click.IntRange(min=1),
    default=MAX_WORDS,
    show_default=True,
    help="Skip longer predictions, because they are descriptions already.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the choice of sentences and forms.")
@click.option(
    "--wordnet",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read WordNet's files in this directory; by default the server's wordnet_directory, or the usual places.",
)
def main(*, out: Path, max_words: int, seed: int, wordnet: Path | None, **options: Any) -> None:
    """Make a stand-in for the AVE benchmark from the labelled answers in FILE."""
    source = input_file(options, needed=("references", "prediction", "label"))
    check_outputs([("--out", out)], source.named_paths)
    thesaurus = _open_wordnet(wordnet or Settings.load().engine.wordnet_directory or usual_directory())
    unlabelled: list[str] = []
    answers = _answers(source.open().rows, unlabelled)
    found = stand_in(answers, words=WordForms(), thesaurus=thesaurus, seed=seed, max_words=max_words)
    for sentence in _sentences(found, unlabelled):
        click.echo(sentence, err=True)
    if not found.rows:
        raise InputError(f"{source.name} has no row that fits a stand-in. The reasons are above")
    write_text(out, "".join(f"{json.dumps(asdict(row), ensure_ascii=False)}\n" for row in found.rows))
    click.echo(f"{len(found.rows)} samples written to {out}", err=True)


def _open_wordnet(directory: Path) -> WordNet:
    try:
        return WordNet(directory.expanduser())
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read WordNet's files in {directory} ({error}). Install them (Debian: apt-get install "
            "wordnet-base) or give their directory"
        ) from error


def _answers(rows: Iterator[Row], unlabelled: list[str]) -> Iterator[LabelledAnswer]:
    """Yield the complete rows with a label; add the positions of other rows to `unlabelled`."""
    for row in rows:
        item = row.item or {}
        given = item.get("references", [])
        references = [text for text in given if isinstance(text, str) and text.strip()]
        prediction, question = item.get("prediction"), item.get("question", "")
        whole = bool(references) and len(references) == len(given)
        if not whole or not isinstance(prediction, str) or not isinstance(question, str) or row.human.value is None:
            unlabelled.append(row.position)
            continue
        yield LabelledAnswer(
            id=row.id,
            question=question,
            references=tuple(references),
            prediction=prediction,
            label=row.human.value,
            dataset=row.dataset,
        )


def _sentences(found: StandIn, unlabelled: list[str]) -> Iterator[str]:
    if unlabelled:
        yield f"{len(unlabelled)} rows were skipped because the label or a text is missing (first: {unlabelled[0]})"
    for reason, count in found.left_out.items():
        yield f"{count} rows were skipped: {reason}"
    if found.rows:
        yield f"descriptions: {_counts(found.forms)}"
        yield f"references: {_counts(found.shifts)}; {found.kept_rows} samples keep all references"


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.most_common())


if __name__ == "__main__":
    main()
