"""The old path of `rewardkit.adapters.easyr1`."""

from rewardkit.adapters.easyr1 import REWARD_NAME, REWARD_TYPE, reward, reward_func
from rewardkit.integrations import warn_moved

__all__ = ["REWARD_NAME", "REWARD_TYPE", "reward", "reward_func"]

warn_moved("easyr1")
