"""All attacks, in the order they are reported."""

from __future__ import annotations

from rewardkit.audit.behaviour_checks import CHECKS
from rewardkit.audit.false_negatives import MISSES
from rewardkit.audit.false_positives import HOLES, HOSTILE

#: By name. Those of kind `conduct` are told from what all calls did, and a few of their own.
ATTACKS = {attack.name: attack for attack in (*HOLES, HOSTILE, *MISSES, *CHECKS)}
