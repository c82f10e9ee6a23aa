"""The old path of `rewardkit.adapters.openrlhf`."""

from rewardkit.adapters.openrlhf import reward, reward_func
from rewardkit.integrations import warn_moved

__all__ = ["reward", "reward_func"]

warn_moved("openrlhf")
