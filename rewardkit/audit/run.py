"""Run all attacks on a scorer and collect their results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.audit.behaviour_checks import CallRecorder, check_calls, check_growth
from rewardkit.audit.false_negatives import FALSE_NEGATIVES
from rewardkit.audit.false_positives import FALSE_POSITIVES, HOSTILE_TEXT
from rewardkit.audit.judge_attacks import JUDGE_ATTACKS
from rewardkit.audit.model import (
    REQUESTS_AT_ONCE,
    Attack,
    AttackResult,
    AuditReport,
    AuditRow,
    Failure,
    ScorerProfile,
    Target,
)
from rewardkit.audit.question_attacks import QUESTION_ATTACKS
from rewardkit.audit.rows import packaged_rows, sample_rows
from rewardkit.audit.scorer_process import ScorerProcess
from rewardkit.audit.scorer_profile import profile_forms, profile_scorer
from rewardkit.errors import DataError, UsageError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.registry import EVALUATED_BY_VERL, VERL_EVALUATES

#: The attacks on a scorer that computes: those on judges with a few rows, because they do not
#: depend on the row.
RULE_AUDIT = (
    *FALSE_POSITIVES,
    *QUESTION_ATTACKS,
    *(replace(attack, max_rows=2) for attack in JUDGE_ATTACKS),
    *FALSE_NEGATIVES,
)

#: The attacks on a scorer that asks a model, which reads neither long text nor a gold of ours.
JUDGE_AUDIT = (
    *(attack for attack in (*FALSE_POSITIVES, *QUESTION_ATTACKS) if not attack.max_rows),
    *JUDGE_ATTACKS,
    *(attack for attack in FALSE_NEGATIVES if attack.severity != "low"),
)

#: Default for how long a call may take before it counts as a hang.
CALL_TIMEOUT_SECONDS = 5.0

#: The same for a scorer that asks a model. A judge has a timeout of its own, which should be less.
MODEL_CALL_TIMEOUT_SECONDS = 120.0

#: Default number of rows, and the default for a scorer that asks a model.
ROWS, MODEL_ROWS = 64, 4

#: The name of verl's default reward.
VERL = "verl"

#: Rows of each data source for which the responses are programs.
CODE_ROWS_PER_SOURCE = 2


def audit(
    scorer: str,
    *,
    data: Path | str | Iterable[Mapping[str, Any]] | None = None,
    rows: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    progress: Callable[[int], object] = lambda _: None,
    announce: Callable[[str], object] = lambda _: None,
) -> AuditReport:
    """Attack a scorer as a policy would.

    A scorer whose module has `ASKS_SERVER = True` gets fewer calls, many of them at once: attacks
    on few rows, in one form, and no checks that repeat calls. A call without a verdict counts in
    `no_verdict` and in no attack.

    Args:
        scorer: a built-in name, `my_reward.py:function`, or `verl` for verl's default reward.
        data: a verl parquet, or rows in its schema; None for packaged rows that fit the scorer.
        rows: number of rows to sample; None for 64, or 4 for a scorer that asks a model.
        seed: random seed for sampling rows.
        options: options of the scorer.
        seconds: timeout per call; a longer call counts as a hang. None for 5, or 120 for a scorer
            that asks a model.
        load_seconds: timeout for importing the scorer.
        progress: called with 1 after every attack on a row.
        announce: called with a sentence before the attacks: the number of calls to a model, or
            that verl's default reward runs answers as code.

    Raises:
        UsageError: the scorer does not load, or has no such option.
        DataError: the data cannot be read, or has no rows; or a model never gives a verdict.
    """
    spec = scorer
    if scorer == VERL:
        announce(f"{', '.join(sorted(EVALUATED_BY_VERL))}: {VERL_EVALUATES}.")
        if find_spec("verl") is None:
            raise UsageError(
                "verl is not installed here, so nothing was attacked. Give verl a reward: "
                "reward.custom_reward_function.path=$(rewardkit path math)."
            )
        spec = f"{Path(__file__).with_name('verl_reward.py')}:compute_score"
    with ScorerProcess(spec, options or {}, CALL_TIMEOUT_SECONDS, load_seconds) as process:
        process.seconds = seconds or _timeout(process)
        count = rows or (MODEL_ROWS if process.asks_server else ROWS)
        if data is None:
            sample = packaged_rows(scorer, count, seed, process.options)
        else:
            sample = sample_rows(data, count, seed)
        if process.asks_server:
            announce(_announcement(process, sample))
        report = _audit(process, sample, progress, keep_all=data is not None)
    return replace(report, scorer=scorer)


def _audit(
    process: ScorerProcess,
    sample: list[AuditRow],
    progress: Callable[[int], object],
    *,
    keep_all: bool,
) -> AuditReport:
    """Attack a scorer with some rows."""
    probe = CallRecorder(process)
    profiles, left_out = _profiles(probe, sample, keep_all=keep_all)
    if process.asks_server and probe.failure_counts["no_verdict"] == probe.calls:
        reason = probe.failures["no_verdict"][0].got
        raise DataError(
            f"{process.spec}: none of its first {probe.calls} calls has a verdict: {reason}"
        )
    sources = {profile.data_source for profile in profiles}
    first_calls = [c for c in probe.repeatable_calls if c.row.data_source in sources]
    recorder = CallRecorder(process, repeatable_calls=first_calls)
    targets = _row_targets(sample, profiles)
    attacks = JUDGE_AUDIT if process.asks_server else RULE_AUDIT
    results = [_run_attack(attack, recorder, targets, progress) for attack in attacks]
    ordinary = statistics.median(recorder.seconds)
    if not process.asks_server:
        own_forms = [target.own for target in targets]
        check_calls(recorder, own_forms, CODE_ROWS_PER_SOURCE * len(profiles))
        results.append(_run_attack(HOSTILE_TEXT, recorder, targets, progress))
        check_growth(recorder, own_forms[0])
    return AuditReport(
        scorer=process.spec,
        options=process.options,
        readings=tuple(profiles),
        findings=(*(result for result in results if result.tried), *recorder.results()),
        calls=recorder.calls,
        median_ms=ordinary * 1000,
        worst_ms=max(recorder.seconds) * 1000,
        left_out=tuple(left_out),
        is_stopped=probe.is_stopped or recorder.is_stopped,
    )


def _timeout(process: ScorerProcess) -> float:
    return MODEL_CALL_TIMEOUT_SECONDS if process.asks_server else CALL_TIMEOUT_SECONDS


def _announcement(process: ScorerProcess, rows: list[AuditRow]) -> str:
    """Return how many calls the audit of a scorer that asks a model will make, at most."""
    forms = profile_forms(process)
    targets = [Target(row, forms[0]) for row in rows]
    calls = 2 * len(forms) * len(rows) + sum(
        len(dict.fromkeys(attack.responses(target))) for attack in JUDGE_AUDIT for target in targets
    )
    return (
        f"{process.spec} asks a model: it will judge up to {calls:,} responses to {len(rows)} "
        f"{'row' if len(rows) == 1 else 'rows'}, {REQUESTS_AT_ONCE} at a time."
    )


def check_behaviour(
    scorer: str,
    data: Path | str | Iterable[Mapping[str, Any]],
    *,
    rows: int = 16,
    options: Mapping[str, Any] | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> tuple[list[ScorerProfile], list[AttackResult], tuple[str, ...], tuple[str, ...]]:
    """Check how a scorer rewards golds and how it behaves, without the other attacks.

    A scorer that asks a model only scores golds and wrong answers of a few rows.

    Args:
        scorer: a built-in name, or `my_reward.py:function`.
        data: a verl parquet, or rows in its schema.
        rows: number of rows to sample.
        options: options of the scorer.
        seconds: timeout per call; a longer call counts as a hang.
        load_seconds: timeout for importing the scorer.

    Returns:
        A profile for each data source, a result for each check of behaviour, the keys of the
        dictionary that the scorer returns (none for a number), and those that are always numbers.

    Raises:
        UsageError: the scorer does not load, or has no such option.
        DataError: the data cannot be read, or has no rows.
    """
    sample = sample_rows(data, rows, seed=0)
    with ScorerProcess(scorer, options or {}, seconds, load_seconds) as process:
        recorder = CallRecorder(process)
        if process.asks_server:
            process.seconds = max(seconds, MODEL_CALL_TIMEOUT_SECONDS)
            sample = sample[:MODEL_ROWS]
        profiles = profile_scorer(recorder, sample)
        if not process.asks_server:
            targets = [target.own for target in _row_targets(sample, profiles)]
            check_calls(recorder, targets, CODE_ROWS_PER_SOURCE * len(profiles))
            check_growth(recorder, targets[0])
    return profiles, recorder.results(), recorder.keys or (), recorder.numeric_keys


def _profiles(
    probe: CallRecorder, rows: list[AuditRow], *, keep_all: bool
) -> tuple[list[ScorerProfile], list[str]]:
    """Return the profiles of the data sources that the scorer rewards, and the names of the others.

    All rows of the user count. Packaged rows of another kind say nothing about a scorer.
    """
    profiles = profile_scorer(probe, rows)
    fitting = [profile for profile in profiles if keep_all or profile.rewards_golds] or profiles
    return fitting, [profile.data_source for profile in profiles if profile not in fitting]


class _RowTargets(NamedTuple):
    """A row in the scorer's own form, and in another form that it reads."""

    own: Target
    other: Target | None
    profile: ScorerProfile


def _row_targets(rows: list[AuditRow], profiles: list[ScorerProfile]) -> list[_RowTargets]:
    """Return the targets of every row; the rows take turns in the other forms."""
    profile_of = {profile.data_source: profile for profile in profiles}
    targets: list[_RowTargets] = []
    for index, row in enumerate(rows):
        profile = profile_of.get(row.data_source)
        if profile is None:
            continue
        forms = [form for form in profile.forms[1:] if form.name != "bare"]
        other = Target(row, forms[index % len(forms)]) if forms else None
        targets.append(_RowTargets(Target(row, profile.form), other, profile))
    return targets


def _run_attack(
    attack: Attack,
    recorder: CallRecorder,
    rows: list[_RowTargets],
    progress: Callable[[int], object],
) -> AttackResult:
    """Run an attack on all rows that it applies to."""
    tried, failures = 0, []
    for target, profile in _attack_targets(attack, rows, in_own_form=recorder.process.asks_server):
        calls = [
            (row, response)
            for row in _attack_rows(attack, target)
            for response in dict.fromkeys(attack.responses(target))
        ]
        for (row, response), outcome in zip(calls, recorder.call_all(calls), strict=True):
            if outcome is None:
                continue
            tried += 1
            is_rewarded = outcome.score is not None and outcome.score > profile.threshold
            if is_rewarded != (attack.kind == "miss"):
                failures.append(Failure.of(response, row.gold, outcome.summary))
        progress(1)
    return attack.result(tried, len(failures), failures)


def _attack_targets(
    attack: Attack, rows: list[_RowTargets], *, in_own_form: bool
) -> Iterator[tuple[Target, ScorerProfile]]:
    """Yield the targets of an attack. False positives are also tried in the other forms."""
    counts: dict[str, int] = {}
    for own, other, profile in rows:
        count = counts[profile.data_source] = counts.get(profile.data_source, 0) + 1
        if attack.max_rows and count > attack.max_rows:
            continue
        yield own, profile
        if other is not None and attack.kind == "hole" and not in_own_form:
            yield other, profile


def _attack_rows(attack: Attack, target: Target) -> list[AuditRow]:
    """Return the row itself, or a copy with each of the attack's golds."""
    if not attack.golds:
        return [target.row]
    return [replace(target.row, gold=gold) for gold in attack.golds]
