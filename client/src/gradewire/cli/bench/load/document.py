"""The JSON file and the manifest of a load run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gradewire.cli.run.manifest_file import digests_of, forget_manifest, metric_fields, save_manifest
from gradewire.cli.url_keys import without_keys
from gradewire.manifests import RunCounts, RunManifest, versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.cli.bench.load.options import LoadOptions
    from gradewire.load_testing.run import LoadResult
    from gradewire.manifests import RunClock


def load_document(result: LoadResult, given: LoadOptions, lines: Mapping[str, str]) -> dict[str, Any]:
    """All figures; seconds where no unit is named."""
    knee, step = result.knee, result.knee_step
    return {
        "partial": result.is_partial,
        "error": result.error or None,
        "server": given.setup.endpoint.address,
        "metrics": dict(lines),
        "parameters": given.parameters,
        "file_rows": None if given.own_rows is None else len(given.own_rows.encoded),
        "missing_rows": result.missing_rows,
        "metrics_page_unread": [without_keys(why) for why in result.unread],
        "objective": given.plan.objective,
        "knee": knee
        and {
            "calls_per_s": knee.rate_per_s,
            "answers_per_s": step and step.rate_per_s * step.batch,
            "client_limited": knee.client_limited,
            "at_most": knee.at_most,
            "lost": knee.lost,
        },
        "checks": result.checks,
        "steps": [each.document() for each in result.steps],
    }


def write_load_manifest(
    result: LoadResult, given: LoadOptions, lines: Mapping[str, str], server_version: str, clock: RunClock
) -> None:
    """Writes the manifest where it has a place; raises InputError where that cannot be."""
    path = given.outputs.manifest
    if path is None:
        return
    forget_manifest(path)
    statuses: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for step in result.steps:
        statuses += step.counts.statuses
        codes += step.counts.codes
    manifest = RunManifest(
        command="bench load",
        versions=versions(server_version),
        place=given.setup.endpoint.address,
        **metric_fields(lines),
        inputs=digests_of(given.inputs),
        parameters=given.parameters,
        counts=RunCounts(
            rows=sum(step.counts.sent_items for step in result.steps),
            failed=sum(step.counts.failed * step.batch for step in result.steps),
            unscored=sum((step.counts.failed + step.counts.refused) * step.batch for step in result.steps),
            statuses={", ".join(lines): dict(statuses)},
        ),
        times=clock.times(),
        machine=clock.machine(),
        results={
            "partial": result.is_partial,
            "error": result.error or None,
            "knee_calls_per_s": None if result.knee is None else result.knee.rate_per_s,
            "calls_by_code": dict(codes),
            "checks": [str(check) for check in result.checks],
        },
    )
    save_manifest(path, manifest)
