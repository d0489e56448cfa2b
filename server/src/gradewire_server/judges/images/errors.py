"""Why a picture is not shown."""


class ImageError(ValueError):
    """A picture cannot be shown; the message says why and what to do, without the field's name."""
