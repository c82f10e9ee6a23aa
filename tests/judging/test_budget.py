"""A budget counts requests and tokens, and starts anew after a window of samples."""

import pytest

from rewardkit.judging.judge import Budget


@pytest.mark.parametrize(
    ("limits", "spent"),
    [
        ({"max_calls": 3}, [False] * 3 + [True] * 6),
        ({"max_tokens": 25}, [False] * 3 + [True] * 6),
        ({"max_calls": 1, "window": 3}, [False, True, True] * 3),
        ({"window": 3}, [False] * 9),
    ],
)
def test_requests_are_sent_until_a_limit_is_reached(limits, spent):
    budget = Budget(**limits)
    for is_spent in spent:
        budget.count_sample()
        assert budget.is_spent is is_spent
        budget.calls += not is_spent
        budget.tokens += 10 * (not is_spent)
