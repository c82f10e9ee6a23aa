"""The parquet files of a run: there, readable, right for the reward, and short enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import LaunchFinding, Severity
from rewardkit.launch.plan import Plan
from rewardkit.preprocess.check import Extras, check
from rewardkit.preprocess.check_report import CheckReport
from rewardkit.preprocess.lengths import Measure, tokens_of
from rewardkit.registry import is_path
from rewardkit.scorers.load import load_scorer

#: Findings that a validation set may have: nothing is learnt from it.
_ONLY_TRAIN = frozenset({"duplicate", "conflicting_gold"})

#: Findings about the scorer that a row has by its data_source: not those of a user's, or verl's own.
_OWN_SCORER = frozenset(
    {
        "unknown_data_source",
        "bad_gold",
        "gold_is_wrong",
        "solution_is_wrong",
        "wrong_is_right",
        "scorer_raises",
    }
)


@dataclass(frozen=True)
class FileFacts:
    """A parquet file.

    Attributes:
        path: as the plan has it.
        role: `train` or `val`.
        rows: how many it has.
        data_sources: that its rows have.
        longest_tokens: of its prompts, None without the model's tokenizer.
    """

    path: str
    role: str
    rows: int
    data_sources: tuple[str, ...]
    longest_tokens: int | None = None


@dataclass
class FilesReport:
    """What came of the files."""

    findings: list[LaunchFinding] = field(default_factory=list)
    facts: list[FileFacts] = field(default_factory=list)


def check_files(
    plan: Plan, unchecked: list[str], progress: Callable[[int], object] = lambda _: None
) -> FilesReport:
    """Read every parquet of a plan that is on this machine.

    Args:
        plan: the run.
        unchecked: is given a line for what could not be looked at.
        progress: called with numbers of rows.
    """
    report = FilesReport()
    measure = _tokenizer(plan, unchecked)
    for role in ("train", "val"):
        if role == "val" and not plan.recipe.data.val and not _validates(plan):
            continue  # verl reads a file in any case: the plan gives it the training file
        for name in _names(plan.get(f"data.{role}_files")):
            report.findings += _place(plan, role, name)
            if not Path(name).expanduser().is_file():
                _missing(plan, role, name, report, unchecked)
                continue
            try:
                found = _checked(plan, name, measure, progress)
            except RewardkitError as error:
                report.findings.append(_finding("error", "files", role, str(error), ""))
                continue
            report.facts.append(_facts(name, role, found, measure))
            report.findings += _said(plan, role, name, found)
    return report


def _validates(plan: Plan) -> bool:
    freq = plan.get("trainer.test_freq")
    return bool(plan.get("trainer.val_before_train")) or (isinstance(freq, int) and freq > 0)


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, (list, tuple)) else [str(value)]


def _tokenizer(plan: Plan, unchecked: list[str]) -> Measure | None:
    """The tokenizer of the plan's model, if the model is a folder here."""
    folder = Path(plan.recipe.model).expanduser()
    if not folder.is_dir():
        unchecked.append(
            f"prompt lengths in tokens: {plan.recipe.model} is no folder here; with the tokenizer "
            "at hand: rewardkit check FILE --tokenizer FOLDER --max-prompt-length N."
        )
        return None
    try:
        return tokens_of(str(folder))
    except RewardkitError as error:
        unchecked.append(f"prompt lengths in tokens: {error}")
        return None


def _checked(
    plan: Plan, name: str, measure: Measure | None, progress: Callable[[int], object]
) -> CheckReport:
    limit = plan.get("data.max_prompt_length")
    extras = Extras(measure=measure, limit=limit if measure and isinstance(limit, int) else None)
    reward = plan.recipe.reward
    named = reward.scorer not in {"auto", "verl"} and not is_path(reward.scorer)
    return check(
        Path(name).expanduser(),
        scorer=load_scorer(reward.scorer, **reward.options) if named else None,
        options=reward.options if reward.scorer == "auto" else {},
        extras=extras,
        progress=progress,
    )


def _facts(name: str, role: str, found: CheckReport, measure: Measure | None) -> FileFacts:
    longest = int(found.lengths.summary()["max"]) if measure and found.lengths.counts else None
    sources = tuple(sorted(found.stats.groups.get("data_source", ())))
    return FileFacts(name, role, found.rows, sources, longest)


def _missing(plan: Plan, role: str, name: str, report: FilesReport, unchecked: list[str]) -> None:
    """An error where the run is here, something unchecked where the file is on the nodes."""
    made = [command for command in plan.recipe.data.prepare if f" {name}" in command]
    make = (
        f"Make it: {made[0]}"
        if made
        else "Make it with rewardkit prep, or mend data: in the recipe."
    )
    if plan.recipe.cluster.target == "local":
        report.findings.append(_finding("error", "L-56", role, f"{name}: no such file.", make))
    else:
        unchecked.append(f"{name}: not on this machine; every node must have it. {make}")


def _place(plan: Plan, role: str, name: str) -> Iterator[LaunchFinding]:
    """Paths that verl or the nodes will not find."""
    if name.startswith("~"):
        yield _finding(
            "error", "files", role, f"{name}: verl does not expand ~.", "Write the path."
        )
    many = plan.recipe.nodes > 1 or plan.recipe.cluster.target not in {"local", "script"}
    if many and not Path(name).is_absolute() and "://" not in name:
        yield _finding(
            "warning",
            "L-56",
            role,
            f"{name} is relative, and each node has a folder of its own to start in.",
            "Write an absolute path that all nodes share.",
        )


def _said(plan: Plan, role: str, name: str, found: CheckReport) -> Iterator[LaunchFinding]:
    """The findings of a file's rows, one for each rule."""
    scorer = plan.recipe.reward.scorer
    left_out = _OWN_SCORER if scorer == "verl" or is_path(scorer) else frozenset()
    first = {finding.rule: finding for finding in reversed(found.examples)}
    for rule, count in found.counts.most_common():
        if rule == "long_prompt":  # _too_long says it with the setting to change
            continue
        if rule in left_out or (role == "val" and rule in _ONLY_TRAIN):
            continue
        example = first[rule]
        where = name if example.row is None else f"{name}:{example.row}"
        rows = "" if example.row is None else f" ({count:,} of {found.rows:,} rows)"
        text = f"{where}: {rule.replace('_', ' ')}{rows}: {example.message}."
        severity: Severity = "warning" if rule in _ONLY_TRAIN else "error"
        yield _finding(severity, "files", role, text, f"All of them: rewardkit check {name}")
    yield from _too_long(plan, name, found)


def _too_long(plan: Plan, name: str, found: CheckReport) -> Iterator[LaunchFinding]:
    limit = found.lengths.limit
    if limit is None or not found.lengths.counts:
        return
    over = sum(n for length, n in found.lengths.counts.items() if length > limit)
    longest = max(found.lengths.counts)
    filtered = plan.get("data.filter_overlong_prompts") is True
    if over:
        text = f"{name}: {over:,} of {found.rows:,} prompts are over {limit} tokens (longest {longest})."
        kind: Severity = "warning" if filtered else "error"
        fix = (
            "They are filtered out."
            if filtered
            else (f"Set data.max_prompt_length={longest}, or data.filter_overlong_prompts=True.")
        )
        yield LaunchFinding(
            kind, "L-24", "data.max_prompt_length", text, fix, "verl best practices"
        )


def _finding(severity: Severity, rule: str, role: str, text: str, fix: str) -> LaunchFinding:
    return LaunchFinding(severity, rule, f"data.{role}_files", text, fix)
