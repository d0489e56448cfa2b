"""The command `gradewire label`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from gradewire_cli.label.label_file import LabelFile
from gradewire_cli.label.server import LabelServer
from gradewire_cli.label.session import Doubt, Order, Session, called_right, doubt_of, ordered, usable
from gradewire_cli.options.common import OUTPUT_FILE, seed_option
from gradewire_cli.options.connection import MAX_PORT
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.problems import InputError, one_line_errors, tell
from gradewire_cli.results.journal import check_outputs, files_of, only_run
from gradewire_cli.rows.files import is_url
from gradewire_cli.rows.input_file import InputFile, input_file, input_options, labelled_official_options
from gradewire_cli.scoring.labelled_rows import with_stored_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire_cli.rows.row import Row

_SUFFIX = ".labels.csv"

label_options = stacked(
    input_options,
    labelled_official_options,
    option("--where", multiple=True),
    option("--scores", type=OUTPUT_FILE, multiple=True),
    option("--annotator", "annotators", multiple=True, default=("annotator",), show_default="annotator"),
    option("--ask-class", is_flag=True),
    option("--order", type=click.Choice(get_args(Order)), show_default="uncertain with --scores, else file"),
    seed_option(0),
    option("--out", type=OUTPUT_FILE, show_default=f"FILE{_SUFFIX}"),
    option("--port", type=click.IntRange(0, MAX_PORT), default=0),
)


@command("label")
@label_options
def label_command(**options: Any) -> None:
    """Label the answers in FILE by hand, on a page that only this machine can open.

    Annotators press a key for each answer, and the page shows how far they agree. With --scores, the answers come
    first whose verdict by correctness or smile is UNCERTAIN. Each label is written to the label file at once. If you
    stop the command with Ctrl-C and start it again, it goes on with the answers that have no label. Annotators can
    flag doubtful questions. With --ask-class, they also name the class of each error of the metric.

    `agree --labels-file` and `calibrate --add` read the label file.
    """
    order: Order = options["order"] or ("uncertain" if options["scores"] else "file")
    if order == "uncertain" and not options["scores"]:
        raise click.UsageError("--order uncertain needs --scores FILE")
    if options["ask_class"] and not options["scores"]:
        raise click.UsageError("--ask-class needs --scores FILE, whose verdicts may be wrong")
    source = input_file(options, needed=("references", "prediction", "id"))
    out: Path = options["out"] or _default_out(source)
    read = source.named_paths | {f"--scores {path}": path for path in options["scores"]}
    check_outputs([("--out", out)], read)
    if out.suffix.lower() != ".csv":
        raise InputError(f"--out {out}: the labels are written as CSV. Use a name that ends with .csv")
    with only_run(out, files_of(out)[-1], way_out="name all annotators in that run"):
        file = LabelFile.open(out, options["annotators"])
        with one_line_errors():
            rows, uncertain, verdicts = _rows(source, options["scores"], order, options["seed"])
        session = Session(rows, uncertain, file, source.folder, verdicts if options["ask_class"] else {})
        _serve(LabelServer(session, options["annotators"], options["port"]), session, source)


def _default_out(source: InputFile) -> Path:
    first = source.paths[0]
    if source.is_stdin or is_url(first):
        raise click.UsageError("name the label file with --out FILE, because the rows are not from a file here")
    return Path(first).with_name(f"{Path(first).name.partition('.')[0]}{_SUFFIX}")


def _rows(source: InputFile, scores: Sequence[Path], order: Order, seed: int) -> tuple[list[Row], int, dict[int, bool]]:
    """Return the rows in this order, the number of uncertain rows at the beginning, and verdicts by row index."""
    opened = source.open_with_rows()
    doubts: dict[int, Doubt] = {}
    verdicts: dict[int, bool] = {}
    if scores:
        stored = with_stored_scores(opened.rows, scores)
        pairs = [(row, (doubt_of(output), called_right(output))) for row, output in stored]
        doubts = {row.index: doubt for row, (doubt, _) in pairs}
        verdicts = {row.index: called for row, (_, called) in pairs if called is not None}
        found = [row for row, _ in pairs]
    else:
        found = list(opened.rows)
    rows, skipped = usable(found)
    tell([*opened.notes, *opened.late_notes])
    if skipped:
        tell([f"left out {skipped} rows without an answer"])
    if not rows:
        raise InputError(f"{source.name} has no answers to label")
    return *ordered(rows, [doubts[row.index] for row in rows] if doubts else [], order, seed), verdicts


def _serve(server: LabelServer, session: Session, source: InputFile) -> None:
    for name, url in server.urls.items():
        click.echo(f"{name}: {url}")
    uncertain = f", {session.uncertain} of them with an uncertain verdict first" if session.uncertain else ""
    tell([f"{len(session.rows)} answers to label{uncertain}. Ctrl-C stops. Labels are stored in {session.file.path}"])
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    tell(_closing_lines(session.counts(), session.file.path, source.paths))


def _closing_lines(counts: Mapping[str, int], path: Path, inputs: Sequence[str]) -> list[str]:
    """Return the number of labels by annotator, and the commands that read them."""
    listed = ", ".join(f"{number} by {name}" for name, number in counts.items())
    lines = [f"labels in {path}: {listed}"]
    if any(counts.values()):
        files = shlex.join([*inputs])
        columns = ",".join(counts)
        field = "labels" if len(counts) > 1 else "label"
        mapped = shlex.join(["--labels-file", str(path), "--labels-map", f"{field}={columns}"])
        lines += [
            f"next: gradewire calibrate {files} --add {shlex.quote(str(path))} --metric correctness --level",
            f"or:   gradewire agree {files} {mapped}",
        ]
    return lines
