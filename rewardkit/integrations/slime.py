"""The old path of `rewardkit.adapters.slime`."""

from rewardkit.adapters.slime import reward, reward_func
from rewardkit.integrations import warn_moved

__all__ = ["reward", "reward_func"]

warn_moved("slime")
