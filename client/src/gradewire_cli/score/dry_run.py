"""`gradewire score --dry-run`: estimate judge calls, tokens and price without scoring."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.items import ItemProblem, encode_item
from gradewire.metrics import Auto
from gradewire.metrics.choice import MetricDefaults, choose_metrics, parse_metric_line
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import printable
from gradewire_cli.scoring.judge_work import NOTHING_SENT, JudgeWork, cost_lines
from gradewire_cli.scoring.plan import judge_name, labelled_metrics, runs_elsewhere, written_metrics

if TYPE_CHECKING:
    from gradewire import AsyncClient
    from gradewire.metrics.base import Metric
    from gradewire.transport import Transport
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.options.metrics import MetricOptions
    from gradewire_cli.rows.input_file import InputFile

# Maximum size of an item, which is more than any judge accepts.
_MAX_ITEM_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class DryRun:
    """An estimate of a run's judge calls, tokens and price."""

    source: InputFile
    metrics: MetricOptions
    prices: JudgePrices
    connection: ConnectionOptions
    _unread: int = field(default=0, init=False)
    _cascades: list[str] = field(default_factory=list, init=False)

    async def run(self, transport: Transport | None) -> None:
        """Print the estimate, using nothing from the server except its list of models."""
        async with self.connection.open(transport) as client:
            all_asked = await self._judge_work(client)
        if not all_asked:
            self.source.open_with_rows()
            click.echo("no metric uses a judge, so there are no calls and no cost")
            return
        self._read_rows(list(all_asked.values()))
        for label, asked in all_asked.items():
            click.echo(printable(f"{label}: {asked.text()}"))
        self._report(list(all_asked.values()))

    async def _judge_work(self, client: AsyncClient) -> dict[str, JudgeWork]:
        options = self.metrics
        # `all` depends on the rows, but includes no judge.
        written = await written_metrics(client, options, None, quiet=True)
        synthetic = options.synthetic or "none"
        chosen = choose_metrics(
            labelled_metrics(written, options),
            MetricDefaults(options.preset, synthetic, options.model, options.reference_set, options.judge),
        )
        if chosen.shows_images:
            raise InputError(
                "--dry-run cannot estimate image=true, because only a judge's server knows a picture's tokens. "
                "Leave that metric out"
            )
        if not chosen.asks_judge:
            return {}
        prompts, listed = server_module("gradewire_cli.server_prompts"), await client.models()
        judge_server = self.connection.judge_server
        settings = {} if judge_server is None else judge_server.settings()
        found = {}
        for label, metric in zip(chosen.labels, chosen.metrics, strict=True):
            if metric.asks_judge():
                elsewhere = runs_elsewhere(listed, metric)
                judge = judge_name(metric)
                meter = prompts.judge_meter(judge, elsewhere=elsewhere, settings=settings)
                # A remote server's setting limits the thinking tokens, so their number is unknown here.
                bounded = not elsewhere or self.connection.server is None
                self._cascades += [label] if isinstance(metric, Auto) else []
                found[label] = JudgeWork(
                    judge, prompts.prompt_viewer(_judge_metric(metric).to_spec()), meter, elsewhere, bounded
                )
        return found

    def _read_rows(self, all_work: list[JudgeWork]) -> None:
        known: set[int] = set()
        for row in self.source.open_with_rows().rows:
            item = None if row.item is None else encode_item(row.index, row.item, max_bytes=_MAX_ITEM_BYTES)
            if item is None or isinstance(item, ItemProblem):
                self._unread += 1
                continue
            for asked in all_work:
                asked.add(item, known)

    def _report(self, all_work: list[JudgeWork]) -> None:
        for label in self._cascades:
            click.echo(f"{label}: upper bound, because the judge only grades the rows in the band, not every row")
        for line in cost_lines(all_work, self.prices):
            click.echo(printable(line))
        if self._unread:
            told = "1 row, because it" if self._unread == 1 else f"{self._unread} rows, because they"
            click.echo(f"left out {told} cannot be scored")
        click.echo(NOTHING_SENT)


def _judge_metric(metric: Metric) -> Metric:
    if not isinstance(metric, Auto):
        return metric
    values: dict[str, Any] = {"model": metric.judge_model, "caption": metric.caption}
    return replace(parse_metric_line(metric.judge or "lave"), **values)
