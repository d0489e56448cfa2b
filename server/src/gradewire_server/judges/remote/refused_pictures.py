"""What a server means that refuses a request with pictures: that its model is blind, or that it does not like these."""

import re
from typing import Final

from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges.remote.errors import RemoteError, RemoteFault

_OF_PICTURES: Final = re.compile(
    r"\b(?:images?|image_\w+|pictures?|vision|visual|multi-?modal\w*|modalit(?:y|ies)|mmproj)\b"
)
_BLIND: Final = re.compile(
    r"not? support|n't support|unsupported|only supported|that support|not a(?:ccept)?\b|n't accept|text[- ]only"
    r"|not multi-?modal|\bno vision|mmproj|at most 0 image"
)
_OF_THESE: Final = re.compile(
    r"\b(?:format|mime|media type|file|decod|load|read\b|corrupt|damag|size|dimension|resolution|aspect|pixel|animat"
    r"|download|fetch)|valid image|image is valid|too (?:large|small|big|many)|at most [1-9]"
)
"""What is said of one picture and not of a model: "unsupported image format" is no word of a blind one."""
_READ_CHARACTERS: Final = 4000
_NOT_FOUND: Final = 404


def refusal_of_pictures(words: str, model: str, status: int) -> RemoteError | None:
    """What a server's words about a request with pictures mean; None where they are not about the pictures.

    Either way only the item is refused, and the server stays in use.

    Args:
        words: The server's own.
        model: Its model's name, which says nothing of it ("llama-3.2-vision takes no temperature").
        status: Of its reply, for the message.
    """
    own_name = rf"(?<!\w){re.escape(model.casefold())}(?!\w)"
    lowered = re.sub(own_name, " ", words[:_READ_CHARACTERS].casefold())
    if not _OF_PICTURES.search(lowered):
        return None
    if _BLIND.search(lowered) and not _OF_THESE.search(lowered):
        message = f"the judge's server says that its model {quoted(model)} takes no pictures (judge_sees_images)"
        return RemoteError(RemoteFault.REJECTED, Failure(Status.JUDGE_CANNOT_SEE, message))
    if status == _NOT_FOUND:  # nor is the address, or the model
        return None
    message = (
        f"images: the judge's server refuses these (status {status}): send fewer, smaller ones, or another type; its "
        "words are in the log at level debug"
    )
    return RemoteError(RemoteFault.REJECTED, Failure(Status.INVALID_INPUT, message))
