"""Ctrl-C once asks, twice interrupts."""

import signal

import pytest

from gradewire_train.run.steps import first_interrupt


def test_the_first_one_asks_and_the_second_interrupts() -> None:
    told: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with first_interrupt(lambda: told.append("once")) as requested:
        assert not requested()
        signal.raise_signal(signal.SIGINT)
        assert requested()
        assert told == ["once"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGINT)
    with first_interrupt(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
