"""`gradewire bench capacity`: processes, memory and cost for a rate, from measured costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gradewire.cli.options.group import INPUT_FILE, OUTPUT_FILE, FiniteRange
from gradewire.cli.output.files import write_json
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.output.tables import show_tables
from gradewire.cli.problems import InputError, exit_codes, one_line_errors
from gradewire.cli.run.manifest_file import (
    digests_of,
    forget_manifest,
    manifest_beside,
    manifest_option,
    metric_fields,
    save_manifest,
)
from gradewire.load_testing.capacity.costs import (
    Costs,
    one_length,
    read_measurements,
    shipped_measurements,
)
from gradewire.load_testing.capacity.model import ENTRY_BYTES, Needs, Prices, Workload, needs_of
from gradewire.manifests import RunClock, RunCounts, RunManifest, versions
from gradewire.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gradewire.load_testing.capacity.costs import Measured

_POSITIVE: Final = FiniteRange(min=0, min_open=True)
_UP_TO_A_BILLION: Final = FiniteRange(min=0, min_open=True, max=1e9)
_MIB: Final = 2**20
_GIB: Final = 2**30
_NEAR: Final = 1.1


@click.command(
    "capacity",
    epilog=f"""\b
Examples:
  gradewire bench capacity --rate 2000 --words 12 --hit-rate 0.6
  gradewire bench capacity --rate 2000 --words 12 --hit-rate 0.6 --core-hour 0.04
  gradewire bench capacity --rate 500 --words 45 --hit-rate 0 --from short.json --from verbose.json --from warm.json

Without --from the costs are those that were measured with gradewire itself (the output says when and where): other
processors and metrics have others, so measure your own (gradewire bench load --metrics-url … --json …).
docs/operate/capacity.md has the model, and how far it is from what was measured.

{exit_codes(failed_rows="")}""",
)
@click.option("--rate", type=_UP_TO_A_BILLION, required=True, help="Answers per second at the busiest time.")
@click.option("--words", type=_UP_TO_A_BILLION, required=True, help="Mean words of an answer.")
@click.option("--hit-rate", type=FiniteRange(0, 1), default=0.0, help="Share of answers that were scored before.")
@click.option("--batch", type=click.IntRange(1, 1000), default=1, help="Answers of a call.")
@click.option(
    "--utilisation",
    type=FiniteRange(0, 1, min_open=True),
    default=0.6,
    help="Most that processors should be busy in the mean.",
)
@click.option("--cache-mib", type=click.IntRange(0), default=256, help="Memory cache of a process, MiB.")
@click.option("--kept-days", type=_POSITIVE, default=7.0, help="How long Redis keeps an answer, days.")
@click.option("--entry-bytes", type=click.IntRange(1), default=ENTRY_BYTES, help="Bytes of an answer in Redis.")
@click.option(
    "--gpu-answers-per-s", type=_POSITIVE, help="New answers per second that one GPU encodes, as you measured it."
)
@click.option("--core-hour", type=FiniteRange(0), help="Price of a core for an hour, in your currency.")
@click.option("--gpu-hour", type=FiniteRange(0), default=0.0, help="Price of a GPU for an hour.")
@click.option(
    "--from",
    "files",
    type=INPUT_FILE,
    multiple=True,
    help="Take the costs from this JSON of gradewire bench load. May be repeated.",
)
@click.option("--json", "json_path", type=OUTPUT_FILE, help="Write all figures here.")
@manifest_option
def capacity_command(files: tuple[Path, ...], json_path: Path | None, manifest: Path | None, **options: Any) -> None:
    """Processes, memory, Redis and cost that a rate of answers needs, from measured costs of an answer."""
    clock, manifest = RunClock(), manifest_beside(manifest, json_path)
    check_outputs([("--json", json_path), ("--manifest", manifest)], {str(path): path for path in files})
    with one_line_errors():
        measured = read_measurements(files) if files else shipped_measurements()
        costs = Costs.fitted(measured.points)
    _check_words(options["words"], measured)
    workload = Workload(
        rate_per_s=options["rate"],
        words=options["words"],
        hit_rate=options["hit_rate"],
        batch=options["batch"],
        utilisation=options["utilisation"],
        cache_bytes=options["cache_mib"] * _MIB,
        kept_days=options["kept_days"],
        entry_bytes=options["entry_bytes"],
        gpu_answers_per_s=options["gpu_answers_per_s"],
    )
    needs = needs_of(workload, costs)
    price = None
    if options["core_hour"] is not None:
        prices = Prices(core_hour=options["core_hour"], gpu_hour=options["gpu_hour"])
        price = needs.cost_of_a_million(workload, prices)
    errors = costs.errors(measured.points)
    show_tables([_table(workload, needs, price)], _notes(workload, measured, errors), ())
    if json_path is not None:
        document = {
            "workload": workload,
            "costs": costs,
            "needs": needs,
            "cost_of_a_million": price,
            "metrics": measured.metrics,
            "points": [
                {"point": point, "relative_error": error} for point, error in zip(measured.points, errors, strict=True)
            ],
        }
        write_json(json_path, document)
    if manifest is not None:
        forget_manifest(manifest)
        save_manifest(manifest, _manifest(files, options, measured, needs, clock))


def _check_words(words: float, measured: Measured) -> None:
    """Refuses a length that answers of one other length say nothing of; raises InputError."""
    length = one_length(measured.points)
    if length is not None and not length / _NEAR < words < length * _NEAR:
        raise InputError(
            f"--words {words:g}: the answers that were measured have {length:.3g} words, and what others cost is not "
            f"known: give --words {length:.3g}, or --from files of shorter and longer answers too"
        )


def _manifest(
    files: tuple[Path, ...], options: Mapping[str, Any], measured: Measured, needs: Needs, clock: RunClock
) -> RunManifest:
    return RunManifest(
        command="bench capacity",
        versions=versions(),
        **metric_fields({line.partition("/")[0]: line for line in measured.metrics}),
        inputs=digests_of(files),
        parameters={name: value for name, value in options.items() if value is not None},
        counts=RunCounts(rows=len(measured.points)),
        times=clock.times(),
        machine=clock.machine(),
        results={"cores": needs.cores, "processes": needs.processes, "gpus": needs.gpus},
    )


def _table(workload: Workload, needs: Needs, price: float | None) -> Table:
    rows = [
        ("CPU time of an answer", f"{needs.cpu_s * 1e3:.3g} ms"),
        ("cores that are busy", f"{needs.busy_cores:.3g}"),
        (f"cores to have, at most {workload.utilisation:.0%} busy", str(needs.cores)),
        ("processes of gradewire serve", str(needs.processes)),
        ("their memory", f"{needs.memory_bytes / _GIB:.3g} GiB"),
        (f"Redis, answers of {workload.kept_days:g} days", f"{needs.redis_bytes / _GIB:.3g} GiB"),
        ("GPUs", "none: the cores encode" if needs.gpus is None else str(needs.gpus)),
        ("a million answers", "give --core-hour" if price is None else f"{price:.4g}"),
    ]
    title = (
        f"{workload.rate_per_s:g} answers/s of {workload.words:g} words, {workload.hit_rate:.0%} of them scored before"
    )
    return Table(title, ["", "needed"], rows)


def _notes(workload: Workload, measured: Measured, errors: list[float]) -> list[str]:
    notes = [
        (
            f"costs of {', '.join(measured.metrics)}: {measured.told}; the model is off by at most "
            f"{max(map(abs, errors)):.0%} at its {len(errors)} points"
        )
    ]
    if measured.was_busy:
        notes.append(
            f"the machine was busy with other work then (load average {measured.load:.1f} on {measured.cores} cores), "
            "which makes CPU seconds up to three times those of a quiet one: measure your own costs before you rely on "
            "these (gradewire bench load --metrics-url … --json FILE, then --from FILE)"
        )
    longest = max(point.words for point in measured.points)
    if workload.words > longest and one_length(measured.points) is None:
        notes.append(f"answers of more than {longest:.0f} words were not measured: the line is drawn beyond its points")
    if workload.gpu_answers_per_s is not None:
        notes.append("with a GPU the cores are taken to encode nothing; what feeding it costs them was not measured")
    return notes
