"""Templates of pages that load nothing, with the policy that holds browsers to it."""

import base64
import hashlib
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


class MissingJinjaError(ImportError):
    """jinja2 is not installed; the message says how to get it."""


def template_of(name: str) -> "jinja2.Template":
    """A template by its name, which escapes whatever is put into it.

    Raises:
        MissingJinjaError: jinja2 is not installed.
    """
    try:
        import jinja2  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingJinjaError("a report needs jinja2: pip install 'gradewire[agree]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def page_assets(scripts: Iterable[str], styles: Iterable[str]) -> dict[str, str]:
    """What every template takes: script and style, each of these files, and the policy that allows no others."""
    script, style = ("".join(map(_asset, names)) for names in (scripts, styles))
    return {"script": script, "style": style, "policy": policy(script, style)}


def policy(script: str, style: str) -> str:
    """Lets only this script and this style run, by their digests, whatever the texts of the rows hold."""
    allowed = {"script-src": script, "style-src": style}
    digests = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in allowed.items()
    }
    rules = [f"{kind} 'sha256-{digest}'" for kind, digest in digests.items()]
    return "; ".join(["default-src 'none'", *rules, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _asset(name: str) -> str:
    return (resources.files("gradewire.report") / "templates" / name).read_text(encoding="utf-8")
