"""A budget counts requests, tokens and waiting, and starts anew after a window of samples."""

from contextlib import ExitStack

import pytest

from rewardkit.judging.judge import Budget


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("limits", "calls"), [({"calls": 3}, 3), ({"tokens": 25}, 3), ({"seconds": 5.0}, 3), ({}, 10)]
)
def test_requests_are_sent_until_a_limit_is_reached(limits, calls):
    clock = Clock()
    budget = Budget(**limits, clock=clock)
    sent = 0
    for _ in range(10):
        budget.count_sample()
        if not budget.is_spent():
            with budget.call():
                clock.now += 2.0
            budget.tokens += 10
            sent += 1
        clock.now += 100.0  # time without a request is not the judge's
    assert sent == calls


def test_concurrent_requests_count_their_common_time_once():
    clock = Clock()
    budget = Budget(seconds=5.0, clock=clock)
    with ExitStack() as calls:
        for _ in range(8):
            calls.enter_context(budget.call())
        clock.now += 4.0
        assert not budget.is_spent()
        clock.now += 1.0
        assert budget.is_spent()
    assert budget.is_spent()


def test_the_budget_starts_anew_after_its_window_of_samples():
    budget = Budget(calls=1, window=3)
    spent = []
    for _ in range(9):
        budget.count_sample()
        spent.append(budget.is_spent())
        if not spent[-1]:
            with budget.call():
                pass
    assert spent == [False, True, True] * 3
