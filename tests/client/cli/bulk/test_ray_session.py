"""Addresses of clusters, before Ray is asked."""

import socket

import pytest

from gradewire.cli.bulk.ray_session import _check_reachable
from gradewire.cli.problems import UnreachableError


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:{}"])
def test_an_address_where_somebody_listens_is_left_to_ray(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _check_reachable(form.format(server.getsockname()[1]))


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nobody_listens_is_an_error_at_once(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnreachableError, match="no Ray answers there"):
        _check_reachable(form.format(port))


@pytest.mark.parametrize("address", ["auto", "local", "anyscale://cluster"])
def test_other_forms_are_left_to_ray(address: str) -> None:
    _check_reachable(address)
