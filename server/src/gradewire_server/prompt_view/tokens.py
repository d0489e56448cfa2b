"""A judge's tokenizer without the judge: how many tokens a prompt has, and how much of it is cut off."""

from dataclasses import dataclass

from gradewire_models.errors import ModelError
from gradewire_models.judges import load_judge
from gradewire_server.judges.local.chat import ChatTokenizer, PromptTooLongError, open_chat_tokenizer
from gradewire_server.judges.local.labels import LabelsError
from gradewire_server.prompt_view.rounds import PromptRound, PromptViewError, with_markup
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_TEMPLATE_OF_UNKNOWN = "chatml"


@dataclass(frozen=True, slots=True)
class RoundTokens:
    """A round as token ids.

    Attributes:
        fixed: Of instructions and demonstrations, which are computed once.
        item: Of the item's turn and the begin of the judge's.
        labels: By option: the token whose probability is read.
        truncated: The prediction was cut to the judge's limit.
    """

    fixed: tuple[int, ...]
    item: tuple[int, ...]
    labels: tuple[int, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class JudgeTokenizer:
    """Cuts prompts into tokens where the judge is built, and shows them in any case.

    Attributes:
        note: Whose tokens are counted, or why none are.
        chat: The tokenizer; None where the judge is not built.
        template: Chat template that a prompt is shown in without it.
    """

    note: str
    chat: ChatTokenizer | None = None
    template: str = _TEMPLATE_OF_UNKNOWN

    def tokens(self, asked: PromptRound) -> RoundTokens | None:
        """A round's tokens; None where the judge is not built.

        Raises:
            PromptViewError: It does not fit even without its prediction, or the labels cannot be told apart.
        """
        if self.chat is None:
            return None
        prompt = asked.prompt
        labels: tuple[int, ...] = ()
        try:
            if asked.options:
                found = self.chat.labels(prompt.opening, asked.options)
                opening, labels = found.shared, found.tokens
            else:
                opening = self.chat.opening(prompt.opening)
            tokens = self.chat.prompt(prompt, opening, answer_tokens=asked.max_tokens)
        except (PromptTooLongError, LabelsError) as error:
            raise PromptViewError(str(error)) from error
        return RoundTokens(tokens.fixed, tokens.item, labels, tokens.truncated)

    def text(self, asked: PromptRound, tokens: RoundTokens | None) -> tuple[str, str]:
        """Fixed turns, and the item with the judge's turn begun, with markup: what `tokens` stand for, if there are."""
        if tokens is None or self.chat is None:
            return with_markup(asked.prompt, self.template)
        return self.chat.shown(tokens.fixed), self.chat.shown(tokens.item)


def open_tokenizer(config: EmbeddedJudgeConfig, name: str) -> JudgeTokenizer:
    """The tokenizer of a judge in its repository, with the limits that the judge would have there.

    Raises:
        PromptViewError: The judge's files are damaged.
    """
    try:
        judge = load_judge(config.repository, name)
    except ModelError as error:
        return JudgeTokenizer(f"tokens are not counted: {error}")
    try:
        chat = open_chat_tokenizer(judge, config)
    except (OSError, ValueError) as error:
        raise PromptViewError(f"the tokenizer of judge {name} cannot be read: {error}") from error
    return JudgeTokenizer(f"tokens of {name}", chat, judge.chat_template)
