"""Work that is many small pieces keeps to one thread."""

import sklearn.ensemble
from threadpoolctl import threadpool_info

from gradewire_stats import one_blas_thread


def test_products_and_trees_keep_to_one_thread() -> None:
    assert sklearn.ensemble
    before = [pool["num_threads"] for pool in threadpool_info()]
    with one_blas_thread():
        inside = threadpool_info()
    assert {pool["user_api"] for pool in inside} == {"blas", "openmp"}
    assert {pool["num_threads"] for pool in inside} == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before
