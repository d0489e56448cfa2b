"""The conversion of chats to token IDs and back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from typing import Final

from tokenizers import Tokenizer

from gradewire_models.judges.repository import BuiltJudge
from gradewire_server.domain.items import Status, quoted
from gradewire_server.domain.judge import JudgePrompt, Role, Turn
from gradewire_server.judges.prompt_texts import TEMPLATES, Markup, first_stop
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_CHARACTERS_PER_TOKEN: Final = 16
"""A text may have this many characters for each token of the limit. Real texts have 3 to 5 for each token."""
_KEPT_FIXED: Final = 64
_KEPT_LABELS: Final = 64


class PromptError(Exception):
    """Raised when the judge cannot use a prompt or its labels.

    Attributes:
        status: INVALID_PARAMETER if labels or fixed turns are the cause, so that every item fails; otherwise
            INVALID_INPUT.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """The first token IDs, which all labels share, and for each label the next ID, which only this label has."""

    shared: tuple[int, ...]
    tokens: tuple[int, ...]


def find_labels(encode: Callable[[str], Sequence[int]], opening: str, options: Sequence[str]) -> LabelTokens:
    """Return the tokens that the options have after `opening` and a space. If `opening` is empty, omit the space.

    Raises:
        PromptError: There are fewer than two options, or the token after the options' common beginning is missing or
            the same for two options.
    """
    if len(options) < 2:
        raise PromptError(Status.INVALID_PARAMETER, "a choice needs at least two options")
    begin = f"{opening} " if opening else ""
    ids = [tuple(encode(begin + option)) for option in options]
    shared = sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(*ids, strict=False)))
    seen: dict[int, str] = {}
    for option, each in zip(options, ids, strict=True):
        if len(each) == shared:
            message = f"in this judge's tokens, option {quoted(option)} is the beginning of another option"
            raise PromptError(Status.INVALID_PARAMETER, message)
        other = seen.setdefault(each[shared], option)
        if other is not option:
            message = f"options {quoted(other)} and {quoted(option)} begin with the same token for this judge"
            raise PromptError(Status.INVALID_PARAMETER, message)
    return LabelTokens(ids[0][:shared], tuple(seen))


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A prompt's token IDs."""

    fixed: tuple[int, ...]
    item: tuple[int, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """Maximum prompt lengths in tokens.

    Attributes:
        item: Maximum for the item's turn together with the opening of the judge's turn.
        context: Maximum for the whole prompt together with the answer.
    """

    item: int
    context: int


def open_chat_tokenizer(judge: BuiltJudge, config: EmbeddedJudgeConfig) -> "ChatTokenizer":
    """Return a built judge's tokenizer, limited by the settings and the model's context.

    Raises:
        OSError: The tokenizer's file cannot be read.
        ValueError: See `ChatTokenizer`.
    """
    context_tokens = min(judge.context_tokens, config.max_context_tokens)
    limits = PromptLimits(min(config.max_item_tokens, context_tokens), context_tokens)
    content = judge.tokenizer_path.read_bytes()
    return ChatTokenizer(content, template=judge.chat_template, eos_ids=judge.eos_ids, limits=limits)


class ChatTokenizer:
    """One judge's tokenizer and chat template. Thread-safe.

    Args:
        content: The content of tokenizer.json.
        eos_ids: Tokens that end the judge's turn, in addition to special tokens.

    Raises:
        ValueError: The template is unknown, its markup is not in the vocabulary, or `content` is not a tokenizer.
    """

    def __init__(self, content: bytes, *, template: str, eos_ids: Sequence[int], limits: PromptLimits) -> None:
        if template not in TEMPLATES:
            raise ValueError(f"unknown chat template {template!r}. Known templates: {', '.join(sorted(TEMPLATES))}")
        self._tokenizer = Tokenizer.from_str(content.decode())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # Treat chat tokens that an answer spells out as text.
        self._tokenizer.encode_special_tokens = True
        self.limits = limits
        added = self._tokenizer.get_added_tokens_decoder()
        self.ends = frozenset(eos_ids) | {number for number, token in added.items() if token.special}
        chat = TEMPLATES[template]
        self._after = self._markup(chat.after)
        self._before = {role: self._markup(chat.before[role]) for role in Role}
        self._begin = self._markup(chat.begin)
        self._fixed: Callable[[tuple[Turn, ...]], tuple[int, ...]] = lru_cache(_KEPT_FIXED)(self._encode_fixed)
        self._labels: Callable[[str, tuple[str, ...]], LabelTokens] = lru_cache(_KEPT_LABELS)(
            partial(find_labels, self._encode)
        )

    def question(
        self, prompt: JudgePrompt, options: tuple[str, ...], max_tokens: int
    ) -> tuple[PromptTokens, tuple[int, ...]]:
        """Return a prompt's token IDs, and the options' tokens that follow them; () without options.

        Raises:
            PromptError: See `labels`, `opening` and `prompt`.
        """
        if options:
            labels = self.labels(prompt.opening, options)
            return self.prompt(prompt, labels.shared), labels.tokens
        return self.prompt(prompt, self.opening(prompt.opening), answer_tokens=max_tokens), ()

    def labels(self, opening: str, options: tuple[str, ...]) -> LabelTokens:
        """Return the options' tokens after an opening.

        Raises:
            PromptError: The opening is too long, or `find_labels` fails.
        """
        self._check_characters(opening, "the judge's turn")
        return self._labels(opening, options)

    def opening(self, opening: str) -> tuple[int, ...]:
        """Return the token IDs of the opening of the judge's turn; raise PromptError if the opening is too long."""
        self._check_characters(opening, "the judge's turn")
        return self._encode(opening) if opening else ()

    def prompt(self, prompt: JudgePrompt, opening: Sequence[int], *, answer_tokens: int = 0) -> PromptTokens:
        """Return a prompt's token IDs, truncated to the limits, with `opening` instead of the prompt's opening.

        Raises:
            PromptError: The prompt does not fit even without its prediction, or fixed turns leave no space for an item.
        """
        for turn in prompt.fixed:
            if len(turn.text) > self.limits.context * _CHARACTERS_PER_TOKEN:
                raise PromptError(
                    Status.INVALID_PARAMETER,
                    f"prompt: an instruction or demonstration of {len(turn.text)} characters is too long for the "
                    f"judge, which reads {self.limits.context} tokens",
                )
        fixed = self._fixed(prompt.fixed)
        around = (len(self._before[Role.USER]) + len(self._after) + len(self._before[Role.ASSISTANT])) + len(opening)
        space = min(self.limits.item, self.limits.context - len(fixed) - answer_tokens) - around
        if space < 1:
            raise PromptError(
                Status.INVALID_PARAMETER,
                f"prompt: instructions, demonstrations and answer need {len(fixed) + answer_tokens + around} tokens, "
                f"but the judge reads {self.limits.context}",
            )
        self._check_characters(prompt.lead, "question and references")
        self._check_characters(prompt.tail, "question and references")
        text, truncated = self._fit(prompt, space)
        item = (*self._before[Role.USER], *text, *self._after, *self._before[Role.ASSISTANT], *opening)
        return PromptTokens(fixed, item, truncated)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token IDs without special tokens. Replacement characters stand for invalid bytes."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def shown(self, ids: Sequence[int]) -> str:
        """Return the text of token IDs with markup, for display."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def _fit(self, prompt: JudgePrompt, space: int) -> tuple[tuple[int, ...], bool]:
        prediction = prompt.prediction[: self.limits.item * _CHARACTERS_PER_TOKEN]
        truncated = len(prediction) < len(prompt.prediction)
        ids = self._encode(prompt.lead + prediction + prompt.tail)
        while len(ids) > space:
            surplus = len(ids) - space
            shorter = self._shorten(prediction, surplus)
            if not shorter:
                least = len(self._encode(prompt.lead + prompt.tail))
                raise PromptError(
                    Status.INVALID_INPUT,
                    f"question and references are too long for the judge: {least} tokens without the prediction, "
                    f"but only {space} fit",
                )
            # A cut prediction's end may merge with the tail into different tokens, so check the length again.
            prediction, truncated = shorter, True
            ids = self._encode(prompt.lead + prediction + prompt.tail)
        return ids, truncated

    def _shorten(self, prediction: str, surplus_tokens: int) -> str:
        if not prediction:
            return ""
        offsets = self._tokenizer.encode(prediction, add_special_tokens=False).offsets
        kept = len(offsets) - surplus_tokens
        return prediction[: offsets[kept][0]] if kept > 0 else ""

    def _check_characters(self, text: str, what: str) -> None:
        limit = self.limits.item * _CHARACTERS_PER_TOKEN
        if len(text) > limit:
            message = f"{what}: too long for the judge: {len(text)} characters, but at most {limit} are allowed"
            raise PromptError(Status.INVALID_INPUT, message)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _encode_fixed(self, turns: tuple[Turn, ...]) -> tuple[int, ...]:
        ids = list(self._begin)
        for turn in turns:
            ids += (*self._before[turn.role], *self._encode(turn.text), *self._after)
        return tuple(ids)

    def _markup(self, parts: Sequence[Markup | str]) -> tuple[int, ...]:
        ids: list[int] = []
        for part in parts:
            if isinstance(part, str):
                ids += self._encode(part)
                continue
            number = self._tokenizer.token_to_id(part.token)
            if number is None:
                raise ValueError(f"the vocabulary lacks the token {part.token!r} of the chat template")
            ids.append(number)
        return tuple(ids)


class TextEnd:
    """A detector for the end of an answer."""

    def __init__(self, text: Callable[[Sequence[int]], str], ends: frozenset[int], stop: Sequence[str]) -> None:
        self._text = text
        self._ends = ends
        self._stop = [each for each in stop if each]
        # A character has up to four bytes, and each byte may be a token. So the last `_tail` tokens always contain the
        # longest stop and one more character.
        self._tail = 4 * max(map(len, self._stop), default=0) + 4

    def reached(self, ids: Sequence[int]) -> bool:
        """Return True if the last token ends the answer. Call this after each token."""
        if not ids:
            return False
        if ids[-1] in self._ends:
            return True
        return bool(self._stop) and first_stop(self._text(ids[-self._tail :]), self._stop) is not None

    def read(self, ids: Sequence[int]) -> tuple[str, bool]:
        """Return the answer (stripped, without its stop) and a flag that is True if the answer has ended."""
        ended = bool(ids) and ids[-1] in self._ends
        text = self._text(ids[:-1] if ended else ids)
        at = first_stop(text, self._stop)
        if at is not None:
            return text[:at].strip(), True
        # Drop an incomplete last character.
        return (text if ended else text.rstrip("\ufffd")).strip(), ended
