"""The files of the page, with the policy that holds browsers to them."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_REPORT_ASSETS: Final = {"script-src": ("common.js", "report.js"), "style-src": ("report.css",)}
"""What `gradewire agree --report` puts into a page, in its order."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent.

    Attributes:
        path: Of HTTP.
        content: Its bytes.
        media_type: What they are.
        etag: Tells this content from any other.
    """

    path: str
    content: bytes
    media_type: str
    etag: str

    def response(self, request: Request) -> Response:
        """The file, or 304 where the browser has this very content."""
        headers = {"etag": self.etag, "cache-control": "no-cache", **_policy_headers()}
        if self.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_files() -> Iterator[PageFile]:
    """All files of the page, the page itself at ``/``."""
    for file in sorted(
        resources.files("gradewire_gateway.page").joinpath("static").iterdir(), key=lambda one: one.name
    ):
        suffix = Path(file.name).suffix
        if suffix in _TYPES:
            content = file.read_bytes()
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            yield PageFile(path, content, _TYPES[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@cache
def _policy_headers() -> dict[str, str]:
    report = _report_digests()
    rules = {
        "default-src": "'none'",
        "script-src": f"'self'{report['script-src']}",
        "style-src": f"'self'{report['style-src']}",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "frame-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in rules.items()),
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "x-frame-options": "DENY",
    }


def _report_digests() -> dict[str, str]:
    """Digests of the report's own script and style: its frame inherits the page's policy, and may run these alone.

    They are read beside the client and not through it: importing it would bring all that it needs into this process.
    """
    client = find_spec("gradewire")
    places = [] if client is None else list(client.submodule_search_locations or ())
    found = dict.fromkeys(_REPORT_ASSETS, "")
    for place in places[:1]:
        folder = Path(place) / "report" / "templates"
        for kind, names in _REPORT_ASSETS.items():
            digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).digest()
            found[kind] = f" 'sha256-{base64.b64encode(digest).decode()}'"
    return found
