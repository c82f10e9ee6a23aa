"""The attacks as tests in a reward's own repository, one test for each attack.

    from rewardkit.audit import conformance

    test_my_reward = conformance("my_reward.py:compute_score", data="tests/rows.parquet")

A failing test names the attack and shows the pairs that went through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rewardkit.audit.attacks import ATTACKS
from rewardkit.audit.model import AuditReport, Severity, severities_from
from rewardkit.audit.run import audit
from rewardkit.errors import MissingPackageError, UnknownNameError


def conformance(
    scorer: str,
    *,
    data: Path | str | Iterable[Mapping[str, Any]] | None = None,
    rows: int = 16,
    options: Mapping[str, Any] | None = None,
    at_least: Severity = "medium",
    allowed: Collection[str] = (),
) -> Callable[[str], None]:
    """Return a pytest test, parametrized by attack. The audit runs once, with the first test.

    Args:
        scorer: a built-in name, or `my_reward.py:function`; a path is seen from where pytest runs.
        data: a verl parquet, or rows in its schema; None for packaged rows that fit the scorer.
        rows: number of rows to sample.
        options: of the scorer.
        at_least: lowest severity to test.
        allowed: names of attacks that may go through.

    Raises:
        MissingPackageError: pytest is not installed.
        UsageError: an allowed attack does not exist.
    """
    try:
        import pytest
    except ImportError as error:
        raise MissingPackageError("conformance needs pytest: pip install pytest.") from error
    for name in allowed:
        if name not in ATTACKS:
            raise UnknownNameError(f"no attack {name!r}. Known: {', '.join(ATTACKS)}.")

    @cache
    def report() -> AuditReport:
        return audit(scorer, data=data, rows=rows, options=options)

    severities = severities_from(at_least)
    names = [n for n, a in ATTACKS.items() if a.severity in severities and n not in allowed]

    @pytest.mark.parametrize("attack", names)
    def test(attack: str) -> None:
        result = next((each for each in report().findings if each.attack == attack), None)
        if result is None:
            pytest.skip("no row for this attack")
        elif result.failed:
            pairs = "\n".join(f"  {failure.text}" for failure in result.failures)
            message = (
                f"{scorer}: {attack} ({result.kind}, {result.severity}) went through in "
                f"{result.failed} of {result.tried} calls. {result.about}\n{pairs}"
            )
            pytest.fail(message, pytrace=False)

    return test
