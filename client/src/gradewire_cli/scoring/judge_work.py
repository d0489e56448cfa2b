"""The judge calls, tokens and price of a run, estimated for --dry-run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.server_prompts import JudgeMeter, PromptView
    from gradewire_proto.v1 import judging_pb2, types_pb2


NOTHING_SENT: Final = "nothing was sent or scored; cached verdicts cost nothing"


@dataclass(slots=True)
class JudgeWork:
    """The calls that one metric would make to its judge.

    Attributes:
        elsewhere: True if the judge runs on a separate server.
        bounded: True if this process knows the judge's maximum output.
        written: Maximum number of tokens that the judge may write, including thinking tokens if `bounded`.
        without: Number of rows without a judge call, because a rule decides or the row cannot be judged.
        noun: Plural of the rows' name in messages.
    """

    judge: str
    view: Callable[[Any], PromptView | None]
    meter: JudgeMeter
    elsewhere: bool
    bounded: bool
    calls: int = 0
    read: int = 0
    written: int = 0
    rows: int = 0
    repeated: int = 0
    without: int = 0
    noun: str = "rows"

    def add(self, item: types_pb2.Item | judging_pb2.Pair, known: set[int]) -> None:
        """Count the calls of an item or pair. `known` has hashes of earlier prompts, which need no second call."""
        view = self.view(item)
        rounds = view.rounds if view else ()
        costs = [cost for cost in map(self.meter.cost, rounds) if cost is not None]
        if not rounds or len(costs) < len(rounds):
            self.without += 1
            return
        # Later rounds contain the judge's earlier output, which is the same for equal prompts.
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
        """Return a sentence on the calls and their tokens."""
        beside = [
            f"{count} {what}"
            for count, what in ((self.repeated, "repeated"), (self.without, "without a judge call"))
            if count
        ]
        rows = ", ".join([f"{self.rows} {self.noun}", *beside])
        return f"{self.calls} calls ({rows}), {_token_text([self])}"


def _token_text(all_work: Sequence[JudgeWork]) -> str:
    read, written = (sum(getattr(each, name) for each in all_work) for name in ("read", "written"))
    counted = "" if all(each.meter.exact for each in all_work) else "estimated "
    bound = "at most" if all(each.bounded for each in all_work) else "estimated"
    return f"{counted}{read} tokens read and {bound} {written} written"


def cost_lines(all_work: Sequence[JudgeWork], prices: JudgePrices) -> Iterator[str]:
    """Yield the total if there are several metrics, the price, and notes on how both were found."""
    calls, read, written = (sum(getattr(each, name) for each in all_work) for name in ("calls", "read", "written"))
    elsewhere = any(asked.elsewhere for asked in all_work)
    if len(all_work) > 1:
        yield f"total: {calls} calls, {_token_text(all_work)}"
    if prices.are_known or elsewhere:
        estimated = not all(asked.meter.exact and asked.bounded for asked in all_work)
        yield prices.text(read, written, at_most=True, estimated=estimated)
    else:
        yield "price: none, because the judge runs in the server"
    yield from dict.fromkeys(asked.meter.note for asked in all_work)
    if not all(asked.bounded for asked in all_work):
        yield "thinking tokens are not included, because the server's judge_reasoning_tokens is unknown"
    if elsewhere:
        yield "not included: a few capability checks of the judge's server, and retries"
