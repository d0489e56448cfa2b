"""No more connections are taken than there are file descriptors for."""

import resource

import pytest

from gradewire_server.rpc.connections.descriptors import most_connections, raise_descriptor_limit


def test_the_limit_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    raise_descriptor_limit()
    assert set_to == [(4096, 4096)]


def test_a_system_that_refuses_leaves_it_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_descriptor_limit()
    assert "stays at 256" in caplog.text


@pytest.mark.parametrize(("descriptors", "most"), [(256, 128), (4096, 1000), (resource.RLIM_INFINITY, 1000)])
def test_connections_leave_descriptors_for_others(monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert most_connections(1000) == most
