"""Everything that can be known to be wrong with a run before a device is rented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.environment import check_environment
from rewardkit.launch.preflight.files import FileFacts, check_files
from rewardkit.launch.preflight.reward import check_reward
from rewardkit.launch.preflight.verl import check_with_verl
from rewardkit.launch.rules import check_rules
from rewardkit.launch.rules.facts import RunFacts, read_facts

__all__ = ["Preflight", "preflight"]


@dataclass(frozen=True)
class Preflight:
    """What was found, and what could not be looked at here.

    Attributes:
        findings: the worst first.
        unchecked: what was left out and why, a line each.
        files: what the parquet files are.
    """

    findings: tuple[LaunchFinding, ...]
    unchecked: tuple[str, ...]
    files: tuple[FileFacts, ...] = ()

    def fatal(self, *, strict: bool) -> bool:
        """Whether the run must not start."""
        worst = {"error", "warning"} if strict else {"error"}
        return any(finding.severity in worst for finding in self.findings)


def preflight(plan: Plan, *, progress: Callable[[int], object] = lambda _: None) -> Preflight:
    """Look at a plan: the rules, verl's own validation, the files, the reward, this machine.

    Args:
        plan: the run.
        progress: called with the rows of the files as they are read.
    """
    unchecked: list[str] = []
    files = check_files(plan, unchecked, progress)
    found = list(files.findings)
    found += check_rules(plan, _facts(plan, files.facts))
    found += check_with_verl(plan, unchecked)
    found += check_reward(plan, files.facts, unchecked)
    found += check_environment(plan, unchecked)
    return Preflight(tuple(sort_by_severity(found)), tuple(unchecked), tuple(files.facts))


def _facts(plan: Plan, files: list[FileFacts]) -> RunFacts:
    """What the rules may know besides the plan: the model's configuration, and the files."""
    train, val = ([file for file in files if file.role == role] for role in ("train", "val"))
    lengths = [file.longest_tokens for file in train if file.longest_tokens is not None]
    return replace(
        read_facts(plan),
        train_rows=sum(file.rows for file in train) or None,
        val_rows=sum(file.rows for file in val) or None,
        longest_prompt=max(lengths, default=None),
    )
