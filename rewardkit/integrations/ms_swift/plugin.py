"""The old path of the plugin in `rewardkit.adapters.ms_swift`, which registers the reward."""

from rewardkit.adapters.ms_swift.plugin import reward_func
from rewardkit.integrations import warn_moved

__all__ = ["reward_func"]

warn_moved("ms_swift")
