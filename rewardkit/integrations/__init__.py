"""The old paths of `rewardkit.adapters`, which work for one more release."""

from __future__ import annotations

from warnings import warn


def warn_moved(name: str) -> None:
    """Warn that the adapter `name` has moved."""
    warn(
        f"rewardkit.integrations.{name} has moved to rewardkit.adapters.{name}; the old path will "
        "be removed in the next release.",
        DeprecationWarning,
        stacklevel=3,
    )
