import pytest

from gradewire.load_testing.capacity.costs import Costs
from gradewire.load_testing.capacity.model import Prices, Workload, needs_of

MIB = 2**20
COSTS = Costs(call_s=400e-6, answer_s=100e-6, word_s=0.0, new_answer_s=0.0, new_word_s=1e-3)


def test_needs_are_those_worked_out_by_hand() -> None:
    """1 000/s of 10 words, half of them new: 0.5 ms warm + 0.5 x 10 ms new = 5.5 ms: 5.5 cores busy."""
    workload = Workload(rate_per_s=1000, words=10, hit_rate=0.5, utilisation=0.5, cache_bytes=16 * MIB, kept_days=2)
    needs = needs_of(workload, COSTS)
    assert needs.cpu_s == pytest.approx(5.5e-3)
    assert needs.busy_cores == pytest.approx(5.5)
    assert needs.cores == 11
    assert needs.processes == 1  # 0.5 cores of Python
    assert needs.memory_bytes == (384 + 16) * MIB
    assert needs.redis_bytes == 500 * 2 * 86_400 * 1000
    assert needs.gpus is None
    # 11 cores at 0.04 an hour are 0.44 for 3.6 million answers.
    assert needs.cost_of_a_million(workload, Prices(core_hour=0.04)) == pytest.approx(0.44 / 3.6)


def test_answers_from_the_cache_are_bounded_by_one_thread_a_process() -> None:
    needs = needs_of(Workload(rate_per_s=6000, words=10, hit_rate=1.0, utilisation=0.5), COSTS)
    assert needs.processes == needs.cores == 6
    assert needs.redis_bytes == 0


def test_calls_of_many_answers_share_the_cost_of_the_call() -> None:
    one, many = (needs_of(Workload(rate_per_s=100, words=1, hit_rate=1.0, batch=batch), COSTS) for batch in (1, 40))
    assert one.cpu_s == pytest.approx(500e-6)
    assert many.cpu_s == pytest.approx(110e-6)


def test_gpus_take_the_encoding_from_the_cores() -> None:
    workload = Workload(rate_per_s=1000, words=10, hit_rate=0.5, utilisation=0.5, gpu_answers_per_s=300)
    needs = needs_of(workload, COSTS)
    assert needs.gpus == 4  # 500 new answers a second, 300 a GPU, half busy
    assert needs.busy_cores == pytest.approx(0.5)
    prices = Prices(core_hour=0.0, gpu_hour=0.9)
    assert needs.cost_of_a_million(workload, prices) == pytest.approx(4 * 0.9 / 3.6)
