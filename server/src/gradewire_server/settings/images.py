"""Which pictures judges are shown."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import MIB, Bytes, Count, Names

_HOST: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*(?::(?P<port>[1-9][0-9]{0,4}))?")
_MOST_PORT: Final = 65_535


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        named = _HOST.fullmatch(name)
        if named is None or int(named["port"] or 1) > _MOST_PORT:
            raise ValueError(f"{name!r} is no host: write images.example.org, or images.example.org:8443")
    return tuple(name.casefold() for name in names)


@dataclass(frozen=True, slots=True, config=GROUP)
class ImageConfig:
    """Limits of pictures. What is over one fails the metrics that show it, and no other."""

    max_count: Annotated[Count, Setting("max_images_per_item", "Pictures of one item.")] = 8
    max_bytes: Annotated[Bytes, Setting("max_image_bytes", "File of one picture.")] = 4 * MIB
    max_pixels: Annotated[Count, Setting("max_image_pixels", "Width times height of one picture.")] = 25_000_000
    """One picture at a time is decoded, which takes four bytes a pixel."""
    hosts: Annotated[
        Names,
        AfterValidator(_hosts),
        Setting(
            "judge_image_hosts",
            "Hosts (HOST or HOST:PORT) whose https addresses of pictures are handed on to the judge; none: data only.",
        ),
    ] = ()
    """The judge's own server fetches them; this one fetches nothing."""
