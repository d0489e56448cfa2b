"""`gradewire score --dry-run`: what judges would be asked and paid, without asking or scoring anything."""

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
from gradewire_cli.scoring.plan import judge_name, labelled_metrics, runs_elsewhere, written_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradewire import AsyncClient
    from gradewire.metrics.base import Metric
    from gradewire.transport import Transport
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.options.metrics import MetricOptions
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.server_prompts import JudgeMeter, PromptView
    from gradewire_proto.v1 import types_pb2

# More than any judge reads.
_MAX_ITEM_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class _JudgeWork:
    """The questions that one metric would ask its judge.

    Attributes:
        view: What it is shown of an item.
        elsewhere: Whether its judge runs behind a server of its own.
        bounded: Whether it is known here what the judge may write at most.
        written: The most tokens that it may write, thoughts included; of one that is not `bounded`, without them.
        repeated: Rows whose questions another row asks already.
        without: Rows for which no judge is asked: a rule decides, or they cannot be judged.
    """

    judge: str
    view: Callable[[types_pb2.Item], PromptView | None]
    meter: JudgeMeter
    elsewhere: bool
    bounded: bool
    calls: int = 0
    read: int = 0
    written: int = 0
    rows: int = 0
    repeated: int = 0
    without: int = 0

    def add(self, item: types_pb2.Item, known: set[int]) -> None:
        """Take in an item; `known` are hashes of the questions so far, which a judge is not asked again."""
        view = self.view(item)
        rounds = view.rounds if view else ()
        costs = [cost for cost in map(self.meter.cost, rounds) if cost is not None]
        if not rounds or len(costs) < len(rounds):
            self.without += 1
            return
        # A round behind a text that only a judge could write is as new as that text.
        question = hash((self.judge, rounds))
        if question in known:
            self.repeated += 1
            return
        known.add(question)
        self.rows += 1
        texts = 0
        for asked, cost in zip(rounds, costs, strict=True):
            self.calls += 1
            self.read += cost.read + texts
            self.written += cost.most_written
            texts += asked.max_tokens

    def text(self) -> str:
        """Return a line for people."""
        beside = [
            f"{count} {what}"
            for count, what in ((self.repeated, "like another"), (self.without, "without a judge"))
            if count
        ]
        rows = ", ".join([f"{self.rows} rows", *beside])
        return f"{self.calls} calls ({rows}), {_tokens([self])}"


def _tokens(all_work: Sequence[_JudgeWork]) -> str:
    """Return tokens of all of them, for people: what is counted, what is estimated, and what is a bound."""
    read, written = (sum(getattr(each, name) for each in all_work) for name in ("read", "written"))
    counted = "" if all(each.meter.exact for each in all_work) else "estimated "
    bound = "at most" if all(each.bounded for each in all_work) else "estimated"
    return f"{counted}{read} tokens read and {bound} {written} written"


@dataclass(slots=True)
class DryRun:
    """Reckons a run."""

    source: InputFile
    metrics: MetricOptions
    prices: JudgePrices
    connection: ConnectionOptions
    _unread: int = field(default=0, init=False)
    _cascades: list[str] = field(default_factory=list, init=False)

    async def run(self, transport: Transport | None) -> None:
        """Print it; ask the server for its list of models, and nothing else."""
        async with self.connection.open(transport) as client:
            all_asked = await self._judge_work(client)
        if not all_asked:
            click.echo("no metric asks a judge: no calls, nothing to pay")
            return
        self._read_rows(list(all_asked.values()))
        for label, asked in all_asked.items():
            click.echo(printable(f"{label}: {asked.text()}"))
        self._report(list(all_asked.values()))

    async def _judge_work(self, client: AsyncClient) -> dict[str, _JudgeWork]:
        options = self.metrics
        # `all` depends on the rows, but no judge is among it.
        written = await written_metrics(client, options, None, quiet=True)
        synthetic = options.synthetic or "none"
        chosen = choose_metrics(
            labelled_metrics(written, options),
            MetricDefaults(options.preset, synthetic, options.model, options.reference_set, options.judge),
        )
        if chosen.shows_images:
            raise InputError(
                "--dry-run cannot estimate image=true, for only a judge's server knows how many tokens a picture has: "
                "leave that metric out"
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
                # The tokens that the judge of another server may think are a setting there.
                bounded = not elsewhere or self.connection.server is None
                self._cascades += [label] if isinstance(metric, Auto) else []
                found[label] = _JudgeWork(
                    judge, prompts.prompt_viewer(_judge_metric(metric).to_spec()), meter, elsewhere, bounded
                )
        return found

    def _read_rows(self, all_work: list[_JudgeWork]) -> None:
        known: set[int] = set()
        for row in self.source.open().rows:
            item = None if row.item is None else encode_item(row.index, row.item, max_bytes=_MAX_ITEM_BYTES)
            if item is None or isinstance(item, ItemProblem):
                self._unread += 1
                continue
            for asked in all_work:
                asked.add(item, known)

    def _report(self, all_work: list[_JudgeWork]) -> None:
        for label in self._cascades:
            click.echo(
                f"{label}: as if its judge were asked about every row; it is asked about those of its band alone"
            )
        calls, read, written = (sum(getattr(each, name) for each in all_work) for name in ("calls", "read", "written"))
        elsewhere = any(asked.elsewhere for asked in all_work)
        if len(all_work) > 1:
            click.echo(f"in all: {calls} calls, {_tokens(all_work)}")
        if self.prices.are_known or elsewhere:
            estimated = not all(asked.meter.exact and asked.bounded for asked in all_work)
            click.echo(self.prices.text(read, written, at_most=True, estimated=estimated))
        else:
            click.echo("price: none that is known of, the judge runs with the server")
        for note in dict.fromkeys(asked.meter.note for asked in all_work):
            click.echo(printable(note))
        if not all(asked.bounded for asked in all_work):
            click.echo(
                "what the judge may think (judge_reasoning_tokens of that server) is not known here and left out"
            )
        if elsewhere:
            click.echo(
                "a few small questions about what the judge's server can do, and what is sent again, come on top"
            )
        if self._unread:
            click.echo(f"{self._unread} rows cannot be scored and are left out")
        click.echo("nothing was asked and nothing scored; verdicts that are kept already cost nothing")


def _judge_metric(metric: Metric) -> Metric:
    """Return the metric whose prompts the judge is shown: itself, but for auto the one that it asks."""
    if not isinstance(metric, Auto):
        return metric
    values: dict[str, Any] = {"model": metric.judge_model, "caption": metric.caption}
    return replace(parse_metric_line(metric.judge or "lave"), **values)
