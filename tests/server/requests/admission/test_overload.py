"""Overload lasts while refusals do not pause."""

from tests.server.requests.admission.clock import Clock

from gradewire_server.requests.admission.overload import OverloadWatch


def test_it_lasts_from_the_first_refusal_until_they_pause() -> None:
    clock = Clock()
    watch = OverloadWatch(clock)
    assert watch.lasts_s == 0
    for _ in range(10):
        watch.refused()
        clock.now_s += 1
    assert watch.lasts_s == 10
    clock.now_s += 1.5
    assert watch.lasts_s == 0
    watch.refused()
    clock.now_s += 1
    assert watch.lasts_s == 1, "it began anew"
