"""The old path of `rewardkit.adapters.ms_swift`."""

from rewardkit.integrations import warn_moved

warn_moved("ms_swift")
