"""Addresses of clusters, before Ray is asked."""

import socket

import pytest

from gradewire_cli.bulk.pipeline import _check_connection, _init, cores_by_machine
from gradewire_cli.problems import UnreachableError


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:{}"])
def test_an_address_where_somebody_listens_is_left_to_ray(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _check_connection(form.format(server.getsockname()[1]))


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nobody_listens_is_an_error_at_once(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnreachableError, match="no Ray cluster answers"):
        _check_connection(form.format(port))


@pytest.mark.parametrize("address", ["auto", "local", "anyscale://cluster"])
def test_other_forms_are_left_to_ray(address: str) -> None:
    _check_connection(address)


class RayOfMachines:
    """In the place of Ray on a cluster that a test cannot have."""

    def __init__(self, *machines: dict[str, float]) -> None:
        dead = {"Alive": False, "Resources": {}}
        self._nodes = [{"Alive": True, "Resources": resources} for resources in machines] + [dead]

    def nodes(self) -> list[dict[str, object]]:
        return self._nodes


def test_machines_are_those_that_live_and_have_cores() -> None:
    ray = RayOfMachines({"CPU": 8.0, "memory": 1e9}, {"memory": 1e9}, {"CPU": 0.0}, {"CPU": 2.0})
    assert cores_by_machine(ray) == [8, 2]


def test_of_a_cluster_that_has_no_cores_yet_one_is_asked() -> None:
    assert cores_by_machine(RayOfMachines({"CPU": 0.0})) == [1]


class SlowRay:
    """In the place of Ray on a machine that is too busy for it, which nothing here can make one."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.tries = 0

    def init(self, **_: object) -> None:
        self.tries += 1
        if self._errors:
            raise self._errors.pop(0)

    def shutdown(self) -> None:
        """Ends what has started of it."""


def test_a_node_that_is_late_is_started_again() -> None:
    ray = SlowRay(Exception("The current node timed out during startup."), Exception("The same."))
    _init(ray, "local", {})
    assert ray.tries == 3


@pytest.mark.parametrize(
    ("errors", "tries"),
    [([Exception("late")] * 3, 3), ([ConnectionError("nobody")], 1), ([Exception("late"), ValueError("wrong")], 2)],
)
def test_other_errors_and_the_last_one_are_told(errors: list[Exception], tries: int) -> None:
    ray = SlowRay(*errors)
    with pytest.raises(type(errors[-1]), match=str(errors[-1])):
        _init(ray, "local", {})
    assert ray.tries == tries
