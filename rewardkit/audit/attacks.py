"""All attacks, in the order of reports."""

from __future__ import annotations

from rewardkit.audit.behaviour_checks import CHECKS
from rewardkit.audit.false_negatives import FALSE_NEGATIVES
from rewardkit.audit.false_positives import FALSE_POSITIVES, HOSTILE_TEXT
from rewardkit.audit.judge_attacks import JUDGE_ATTACKS
from rewardkit.audit.question_attacks import QUESTION_ATTACKS

#: All attacks by name. Checks of behaviour use the calls of all attacks and a few of their own.
ATTACKS = {
    attack.name: attack
    for attack in (
        *FALSE_POSITIVES,
        *QUESTION_ATTACKS,
        *JUDGE_ATTACKS,
        HOSTILE_TEXT,
        *FALSE_NEGATIVES,
        *CHECKS,
    )
}
