"""The old path of `rewardkit.adapters.trl`."""

from rewardkit.adapters.trl import Rewardkit, reward, reward_func
from rewardkit.integrations import warn_moved

__all__ = ["Rewardkit", "reward", "reward_func"]

warn_moved("trl")
