"""Chats as text, for a backend that tokenizes text with special tokens parsed and knows no chats."""

from gradewire_server.domain.judge import JudgePrompt, Role
from gradewire_server.judges.chat_templates import TEMPLATES, Markup
from gradewire_server.judges.remote.text import harmless, turns


def chat_text(prompt: JudgePrompt, template: str = "chatml") -> str:
    """A prompt as its model was trained to read it, up to where the judge goes on.

    The markup of the template is the only markup in it: see `harmless`.

    Args:
        prompt: What the judge is to see.
        template: A name of `TEMPLATES`.
    """
    kind = TEMPLATES[template]
    parts = list(kind.begin)
    for turn in turns(prompt):
        parts += [*kind.before[turn.role], turn.text, *kind.after]
    parts += [*kind.before[Role.ASSISTANT], harmless(prompt.opening)]
    return "".join(part.token if isinstance(part, Markup) else part for part in parts)
