"""`rewardkit audit`: a scorer attacked as a policy would, on real rows.

    from rewardkit.audit import audit, conformance

    report = audit("my_reward.py:compute_score", data="train.parquet")
    test_my_reward = conformance("my_reward.py:compute_score", data="train.parquet")

`audit` gives a report; `conformance` makes the same attacks the tests of a reward's repository.
"""

from rewardkit.audit.as_tests import conformance
from rewardkit.audit.model import AuditReport, Failure, Finding
from rewardkit.audit.run import audit

__all__ = ["AuditReport", "Failure", "Finding", "audit", "conformance"]
