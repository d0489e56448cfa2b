"""Chats as text, for a backend that tokenizes text with special tokens parsed and knows no chats."""

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.chat_templates import TEMPLATES, Markup
from gradewire_server.judges.remote.text import harmless, turns


def chat_text(prompt: JudgePrompt, template: str = "chatml", *, image_placeholder: str = "") -> str:
    """A prompt as its model was trained to read it, up to where the judge goes on.

    The markup of the template is the only markup in it: see `harmless`.

    Args:
        prompt: What the judge is to see.
        template: A name of `TEMPLATES`.
        image_placeholder: What stands for a picture, before the item's text.
    """
    kind = TEMPLATES[template]
    parts = list(kind.begin)
    *before, item = turns(prompt)
    for turn in before:
        parts += [*kind.before[turn.role], turn.text, *kind.after]
    parts += [*kind.before[item.role], image_placeholder * len(prompt.images), item.text, *kind.after]
    parts += [*kind.before[Role.ASSISTANT], harmless(prompt.opening)]
    return "".join(part.token if isinstance(part, Markup) else part for part in parts)
