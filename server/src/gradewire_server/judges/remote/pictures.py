"""Pictures as judges' servers take them."""

import base64

from gradewire_server.domain.image import Image


def base64_of(image: Image) -> str:
    """A picture's bytes in base64."""
    return base64.b64encode(image.data).decode("ascii")


def url_of(image: Image) -> str:
    """A picture as a URL: a data: URI of its bytes, or its own address."""
    return image.uri or f"data:{image.media_type};base64,{base64_of(image)}"
