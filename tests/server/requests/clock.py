"""A clock that goes when it is told to."""


class Clock:
    """Told by `now_s`."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s
