"""Train SFVE's recipe without one task at a time, with several seeds, and measure AVE's properties on stand-ins.

Training needs gradewire[train], and the tables (--tables) need gradewire[agree]. Both read the files of
`python -m benchmarks.agreement.ave_stand_in`.

Every run has a folder in --work with its inputs and its result. The same command continues a killed run from its
checkpoint and skips finished runs; with other texts or steps, it refuses the folder. Several processes with the same
--work share the runs. Runs read no more than half a of the questions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from benchmarks.agreement.sfve_ablations import CHANGES, UNTRAINED
from benchmarks.agreement.sfve_ablations.measuring import StandIn
from benchmarks.agreement.sfve_ablations.tables import tables
from benchmarks.common.measurements import write_block

from gradewire_train.examples import Files

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "sfve_ablations",
    help=__doc__,
    epilog="""\b
Example:
  nice -n 10 python -m benchmarks.agreement.sfve_ablations --standin standin.jsonl --apart nq301-standin.jsonl \\
      --questions vqa-questions.json --questions vqa-annotations.json --nli-pairs nli.jsonl --work runs""",
)
@click.option("--standin", type=_FILE, required=True, help="Stand-in of EVOUNA's rows; half a and half b are measured.")
@click.option("--apart", type=_FILE, required=True, help="Stand-in of NQ301's rows, measured whole.")
@click.option("--questions", type=_FILE, multiple=True, help="Questions for `train sfve`; half a is used.")
@click.option("--nli-pairs", type=_FILE, multiple=True, help="Sentence pairs for `train sfve`.")
@click.option("--wordnet", type=click.Path(file_okay=False, path_type=Path), help="WordNet's files for `train sfve`.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), required=True, help="The runs' folder.")
@click.option("--base", default="all-MiniLM-L6-v2", show_default=True)
@click.option("--kind", "kinds", type=click.Choice(list(CHANGES)), multiple=True, help="By default all kinds.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--steps", type=click.IntRange(1), default=50, show_default=True)
@click.option("--batch-size", type=click.IntRange(2), default=48, show_default=True)
@click.option("--tables", is_flag=True, help="Train nothing, but print the tables of the finished runs.")
@click.option("--document", type=_FILE, help="With --tables, write them into this document's block sfve-ablations.")
def main(**given: Any) -> None:
    """Run what is missing, or print the tables of what is there."""
    sets = {
        "a": StandIn.read(given["standin"], "a"),
        "b": StandIn.read(given["standin"], "b"),
        "apart": StandIn.read(given["apart"], None),
    }
    if given["tables"]:
        found = tables(given["work"], sets)
        click.echo(found)
        if given["document"] is not None:
            write_block(given["document"], "sfve-ablations", found)
        return
    from benchmarks.agreement.sfve_ablations.runs import Ablations  # needs gradewire[train]

    small = {name: given[name] for name in ("steps", "batch_size")}
    files = Files(given["questions"], given["nli_pairs"], half="a")
    ablations = Ablations(sets, files, given["wordnet"], given["work"], small)
    ablations.run(UNTRAINED, given["base"], 0)
    for seed in range(1, given["seeds"] + 1):
        for kind in given["kinds"] or CHANGES:
            ablations.run(kind, given["base"], seed)


if __name__ == "__main__":
    main()
