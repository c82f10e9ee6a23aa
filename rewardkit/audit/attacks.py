"""All attacks, in the order they are reported."""

from __future__ import annotations

from rewardkit.audit.conduct import CHECKS
from rewardkit.audit.holes import HOLES, HOSTILE
from rewardkit.audit.misses import MISSES

#: By name. Those of kind `conduct` are told from what all calls did, and a few of their own.
ATTACKS = {attack.name: attack for attack in (*HOLES, HOSTILE, *MISSES, *CHECKS)}
