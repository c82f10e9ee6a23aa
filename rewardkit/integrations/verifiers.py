"""The old path of `rewardkit.adapters.verifiers`."""

from rewardkit.adapters.verifiers import reward, reward_func, reward_of_rubric
from rewardkit.integrations import warn_moved

__all__ = ["reward", "reward_func", "reward_of_rubric"]

warn_moved("verifiers")
