"""Trees on one thread: beside other tests several wait for each other, fifty times as long as the work takes."""

from collections.abc import Iterator

import pytest
import sklearn.ensemble
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """What limits threads knows of libraries that are loaded, and this one is."""
    assert sklearn.ensemble
    with threadpool_limits(limits=1):
        yield
