"""Attack a scorer as a policy would, on real rows.

    from rewardkit.audit import audit, conformance

    report = audit("my_reward.py:compute_score", data="train.parquet")
    test_my_reward = conformance("my_reward.py:compute_score", data="train.parquet")

`audit` returns a report. `conformance` makes the same attacks the tests of a reward's repository.
"""

from rewardkit.audit.model import AttackResult, AuditReport, Failure, ScorerProfile
from rewardkit.audit.run import audit, conformance

__all__ = ["AttackResult", "AuditReport", "Failure", "ScorerProfile", "audit", "conformance"]
