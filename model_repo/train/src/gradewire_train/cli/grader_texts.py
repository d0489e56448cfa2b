"""``gradewire models train grader-texts``: the drawn rows that a grader is trained and evaluated on."""

from pathlib import Path

import click

from gradewire_models.cli.errors import MissingPackageError
from gradewire_models.errors import ModelError
from gradewire_train.cli.texts import WORDNET_OPTION


@click.command("grader-texts")
@click.option("--kind", "kinds", multiple=True, help="Repeatable; without it all of them.")
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of each kind.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of everything that is drawn.")
@click.option(
    "--part",
    type=click.Choice(["train", "eval"]),
    default="train",
    show_default=True,
    help="Two parts without a common name, noun or long sentence: one to train on, one to evaluate on. Forms of dates "
    "and numbers, and the few words for yes, no, up and down, are in both.",
)
@WORDNET_OPTION
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write all rows there as JSON lines, which `gradewire agree` and `calibrate` read, and print counts only.",
)
def grader_texts(  # noqa: PLR0913, PLR0917 - one argument an option
    kinds: tuple[str, ...], count: int, seed: int, part: str, wordnet: Path | None, out: Path | None
) -> None:
    """Draw labelled rows: questions, references, and answers that are right or wrong by construction.

    Half of the rows of every kind are right: the same value in another form, unit or wording. The others have another
    value, name or noun in the same sentence, an opposite, a list with another member, an answer that evades. The same
    seed and version give the same rows.
    """
    try:
        from gradewire_train.graded.drawing import Drawer, rows_digest  # noqa: PLC0415 - takes a second
        from gradewire_train.texts.lexicon import Lexicon  # noqa: PLC0415 - as above
        from gradewire_train.texts.wordnet import WordNet, usual_directory  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingPackageError(f"texts need more packages ({error}): pip install 'gradewire[train]'") from error
    try:
        drawer = Drawer(Lexicon(WordNet(wordnet or usual_directory())), "eval" if part == "eval" else "train")
        wanted = kinds or drawer.kinds
        if unknown := sorted(set(wanted) - set(drawer.kinds)):
            raise click.BadParameter(f"--kind: no kind {unknown[0]!r} in this part; it has {', '.join(drawer.kinds)}")
        rows = [row for kind in wanted for row in drawer.rows(kind, count, seed=seed)]
    except ModelError as error:
        raise click.ClickException(str(error)) from error
    if out is None:
        for row in rows:
            sign = "+" if row.drawn.right else "-"
            click.echo(f"{row.kind}: {row.drawn.question}\n  = {' | '.join(row.drawn.references)}")
            click.echo(f"  {sign} {row.drawn.prediction}")
    else:
        out.write_text("".join(f"{row.json()}\n" for row in rows), encoding="utf-8")
    for kind in wanted:
        own = [row.drawn for row in rows if row.kind == kind]
        words = sum(len(drawn.prediction.split()) for drawn in own) / max(1, len(own))
        right = sum(drawn.right for drawn in own)
        click.echo(f"{kind}: {len(own)} rows, {right} of them right, answers of {words:.1f} words in the mean")
    click.echo(f"{len(rows)} rows, SHA-256 {rows_digest(rows)}")
