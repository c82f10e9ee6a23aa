"""The old path of `rewardkit.adapters.areal`."""

from rewardkit.adapters.areal import reward, reward_func
from rewardkit.integrations import warn_moved

__all__ = ["reward", "reward_func"]

warn_moved("areal")
