"""What requests cost is learnt kind by kind, in bounded memory."""

import pytest

from gradewire_server.requests.admission.costs import CostEstimates


def test_a_kind_costs_what_it_did() -> None:
    costs = CostEstimates()
    for _ in range(100):
        costs.learn("cold", 100, 300)
        costs.learn("warm", 100, 0)
    assert costs.tokens("cold", 200) == pytest.approx(600)
    assert costs.tokens("warm", 10_000_000) == 0


def test_what_is_not_known_costs_something() -> None:
    costs = CostEstimates()
    assert costs.tokens("new", 100) == 100
    costs.learn("new", 0, 50)
    assert costs.tokens("new", 100) == 100


def test_kinds_that_come_up_are_kept_and_the_others_forgotten() -> None:
    costs = CostEstimates()
    costs.learn("first", 1, 7)
    for number in range(5000):
        costs.learn(number, 1, 3)
        costs.learn("first", 1, 7)
    assert costs.tokens("first", 1) == pytest.approx(7)
    assert costs.tokens(4999, 1) == 3
    assert costs.tokens(0, 1) == 1
