"""What requests cost is learnt kind by kind, in bounded memory."""

import pytest

from gradewire_server.requests.admission.costs import CostEstimates


def test_a_kind_costs_what_it_did() -> None:
    costs = CostEstimates()
    for _ in range(100):
        costs.learn("a", "cold", 100, 300)
        costs.learn("a", "warm", 100, 0)
    assert costs.tokens("a", "cold", 200) == pytest.approx(600)
    assert costs.tokens("a", "warm", 10_000_000) == 0


def test_what_is_not_known_costs_something() -> None:
    costs = CostEstimates()
    assert costs.tokens("a", "new", 100) == 100
    costs.learn("a", "new", 0, 50)
    assert costs.tokens("a", "new", 100) == 100


def test_kinds_that_come_up_are_kept_and_the_others_forgotten() -> None:
    costs = CostEstimates()
    costs.learn("a", "first", 1, 7)
    for number in range(5000):
        costs.learn("a", number, 1, 3)
        costs.learn("a", "first", 1, 7)
    assert costs.tokens("a", "first", 1) == pytest.approx(7)
    assert costs.tokens("a", 4999, 1) == 3
    assert costs.tokens("a", 0, 1) == 1


def test_nobody_makes_it_forget_what_requests_of_others_cost() -> None:
    costs = CostEstimates()
    costs.learn("a", "warm", 100, 0)
    for number in range(5000):
        costs.learn("b", number, 1, 3)
    assert costs.knows("a", "warm")
    assert costs.tokens("a", "warm", 100) == 0
    assert not costs.knows("b", "warm")


def test_callers_that_come_back_are_kept_and_the_others_forgotten() -> None:
    costs = CostEstimates()
    for number in range(5000):
        costs.learn(f"caller {number}", "x", 1, 3)
        costs.learn("steady", "x", 1, 3)
    assert costs.knows("steady", "x")
    assert costs.knows("caller 4999", "x")
    assert not costs.knows("caller 0", "x")
