"""A picture that a question is about."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: the bytes of its file, or where it is.

    Attributes:
        data: The file's bytes; empty where `uri` names it.
        uri: data:…;base64,… or an address; empty where `data` is there.
        media_type: As its sender says, else as it was found out; empty: not known yet.
        digest: SHA-256 of what a judge is shown, 64 hex digits; empty: not counted yet.
    """

    data: bytes = field(default=b"", repr=False)
    uri: str = ""
    media_type: str = ""
    digest: str = ""
