"""Writes down what a judge is shown, for people to read; our own lines begin with ===."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire_proto.conventions.metric_lines import DIGEST_PREFIX_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradewire._embedded.prompts import JudgeTokenizer, PromptRound, PromptView, RoundTokens

_ADDRESS_CHARACTERS = 100


def shown_rounds(
    view: PromptView,
    tokenizer: JudgeTokenizer,
    count: Callable[[JudgeTokenizer, PromptRound], RoundTokens | None],
    *,
    place: str,
    ids: bool,
) -> Iterator[str]:
    """All lines about one row; `count` counts the tokens of a round, `ids` prints their numbers too."""
    yield f"=== {view.title}@{view.digest[:DIGEST_PREFIX_CHARS]}, {place}"
    if view.without_judge:
        yield f"=== {view.without_judge}"
        return
    yield f"=== {tokenizer.note}"
    if view.masked:
        yield '=== MASKED: words of the answer that call it right are not shown, "[...]" stands in their place'
    before: PromptRound | None = None
    for asked in view.rounds:
        tokens = count(tokenizer, asked)
        fixed, item = tokenizer.text(asked, tokens)
        if before is None or before.prompt.fixed != asked.prompt.fixed:
            yield _heading("the same for all items of this kind", tokens.fixed if tokens else None, ids=ids)
            yield fixed.removesuffix("\n")
        cut = ", the answer cut at its end" if tokens and tokens.truncated else ""
        for number, image in enumerate(asked.prompt.images, 1):
            shown = f"{len(image.data)} bytes" if image.data else image.uri[:_ADDRESS_CHARACTERS]
            yield f"=== picture {number}, before the item's text and not among its tokens: {shown}"
        yield _heading(f"the item{cut}", tokens.item if tokens else None, ids=ids)
        yield item
        yield f"=== {_answer(asked, tokens)}"
        before = asked


def _heading(what: str, tokens: Sequence[int] | None, *, ids: bool) -> str:
    if tokens is None:
        return f"=== {what}"
    return f"=== {what}: {len(tokens)} tokens" + (f" {' '.join(map(str, tokens))}" if ids else "")


def _answer(asked: PromptRound, tokens: RoundTokens | None) -> str:
    if not asked.options:
        return f"the judge writes on, at most {asked.max_tokens} tokens and to the end of the line"
    labels = " ".join(asked.options)
    read = f" (probabilities of the tokens {' '.join(map(str, tokens.labels))})" if tokens else ""
    return f"the judge goes on with one of: {labels}{read}"
