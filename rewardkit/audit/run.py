"""Run all attacks on a scorer and collect their results."""

import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from rewardkit.audit.attacks import ATTACKS, JUDGE_AUDIT, RULE_AUDIT, conversation
from rewardkit.audit.conduct import REQUESTS_AT_ONCE, CallRecorder, check_conduct, check_growth
from rewardkit.audit.model import (
    FENCE,
    FORMS,
    SQL_FENCE,
    WHOLE,
    Attack,
    AttackResult,
    AuditReport,
    AuditRow,
    ScorerProfile,
    Severity,
    Target,
    severities_from,
)
from rewardkit.audit.rows import packaged_rows, sample_rows
from rewardkit.audit.scorer_process import ScorerProcess
from rewardkit.audit.task_attacks import as_task
from rewardkit.audit.written_attacks import HOSTILE_TEXT
from rewardkit.errors import DataError, MissingPackageError, UnknownNameError, UsageError
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS
from rewardkit.registry import REPLACE_VERL, VERL_EVALUATES
from rewardkit.scorers.conversation import text_of_messages, with_messages
from rewardkit.scorers.right_score import AnswerForm
from rewardkit.sql.query import Task
from rewardkit.text import row_count

#: The score of a call that returned none: less than any score.
_NO_SCORE = -math.inf

#: Default for how long a call may take before it counts as a hang.
CALL_TIMEOUT_SECONDS = 5.0

#: The same for a scorer that asks a model. A judge has a timeout of its own, which should be less.
MODEL_CALL_TIMEOUT_SECONDS = 120.0

#: The same for rows whose responses are programs, some of which never end.
PROGRAM_CALL_TIMEOUT_SECONDS = 30.0

#: Default number of rows; the defaults for a scorer that asks a model, and for rows with programs.
ROWS, MODEL_ROWS, PROGRAM_ROWS = 64, 4, 4

#: The name of verl's default reward.
VERL = "verl"

#: A row in the scorer's own form, and in another form that it reads.
_RowTarget: TypeAlias = tuple[Target, Target | None, ScorerProfile]


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

    A scorer that asks a model (`ScorerSpec.asks_server`) gets fewer calls, many at once: attacks on
    few rows, in one form, and no checks that repeat calls. A call without a verdict counts in
    `no_verdict` and in no attack.

    Args:
        scorer: a built-in name, `my_reward.py:function`, or `verl` for verl's default reward.
        data: a verl parquet, or rows in its schema; None for packaged rows that fit the scorer.
        rows: number of rows to sample; None for 64, of which 4 with programs, or for 4 if the scorer asks
            a model.
        seed: random seed for sampling rows.
        options: options of the scorer.
        seconds: timeout per call; a longer call counts as a hang. None for 5, for 30 where responses
            are programs, or for 120 for a scorer that asks a model.
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
        for message, names in VERL_EVALUATES.items():
            announce(f"{', '.join(names)}: {message}; {REPLACE_VERL}.")
        if find_spec("verl") is None:
            raise UsageError("verl is not installed here, so nothing was attacked: install it.")
        spec = f"{Path(__file__).with_name('verl_reward.py')}:compute_score"
    most_seconds = seconds or MODEL_CALL_TIMEOUT_SECONDS
    with ScorerProcess(spec, options or {}, most_seconds, load_seconds) as process:
        count = rows or (MODEL_ROWS if process.asks_server else ROWS)
        if data is None:
            sample = packaged_rows(scorer, count, seed, process.options)
        else:
            sample = [as_task(row, scorer) for row in sample_rows(data, count, seed)]
        programs = [row for row in sample if row.problem]
        if rows is None:
            sample = [row for row in sample if row not in programs[PROGRAM_ROWS:]]
        call_seconds = PROGRAM_CALL_TIMEOUT_SECONDS if programs else CALL_TIMEOUT_SECONDS
        process.seconds = most_seconds if process.asks_server else seconds or call_seconds
        if process.asks_server:
            announce(_announcement(process, sample))
        probe = CallRecorder(process)
        all_profiles = profile_scorer(probe, sample)
        # Packaged rows that a scorer does not reward say nothing about it.
        profiles = [p for p in all_profiles if p.rewards_golds or data is not None] or all_profiles
        silences = probe.checks["no_verdict"]
        if process.asks_server and silences.failed == len(probe.seconds):
            raise DataError(
                f"{spec}: none of its first {silences.failed} calls has a verdict: "
                f"{silences.failures[0].got}"
            )
        targets = _row_targets(sample, profiles)
        sources = {profile.data_source for profile in profiles}
        # If the scorer does not even answer golds, the calls so far are all that is known of it.
        recorder = probe if probe.is_stopped else CallRecorder(process)
        recorder.repeatable_calls = [
            call for call in probe.repeatable_calls if call[0].data_source in sources
        ]
        attacks = JUDGE_AUDIT if process.asks_server else RULE_AUDIT
        results = [_run_attack(attack, recorder, targets, progress) for attack in attacks]
        ordinary = statistics.median(recorder.seconds)
        if not process.asks_server:
            check_conduct(recorder, [own for own, _, _ in targets], len(profiles))
            results.append(_run_attack(HOSTILE_TEXT, recorder, targets, progress))
            check_growth(recorder, targets[0][0])
    return AuditReport(
        scorer=scorer,
        options=process.options,
        readings=tuple(profiles),
        findings=(*(result for result in results if result.tried), *recorder.results()),
        calls=len(recorder.seconds),
        median_ms=ordinary * 1000,
        worst_ms=max(recorder.seconds) * 1000,
        left_out=tuple(each.data_source for each in all_profiles if each not in profiles),
        not_run=tuple(recorder.not_run),
        is_stopped=recorder.is_stopped,
    )


def _announcement(process: ScorerProcess, rows: list[AuditRow]) -> str:
    """Return how many calls the audit of a scorer that asks a model will make, at most."""
    forms = profile_forms(process)
    calls = 2 * len(forms) * len(rows) + sum(
        len({*attack.responses(Target(row, forms[0]))}) for attack in JUDGE_AUDIT for row in rows
    )
    return (
        f"{process.spec} asks a model: it will judge up to {calls:,} responses to "
        f"{row_count(len(rows))}, {REQUESTS_AT_ONCE} at a time."
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
    """Check how a scorer rewards golds and how it behaves, as `audit` does without the attacks.

    A scorer that asks a model only scores golds and wrong answers of a few rows.

    Returns:
        A profile for each data source, a result for each check of conduct, the keys of the
        dictionary that the scorer returns (none for a number), and those that are always numbers.
    """
    sample = sample_rows(data, rows, seed=0)
    most_seconds = max(seconds, MODEL_CALL_TIMEOUT_SECONDS)
    with ScorerProcess(scorer, options or {}, most_seconds, load_seconds) as process:
        recorder = CallRecorder(process)
        if process.asks_server:
            sample = sample[:MODEL_ROWS]
        else:
            process.seconds = seconds
        profiles = profile_scorer(recorder, sample)
        if not process.asks_server:
            targets = _row_targets(sample, profiles)
            check_conduct(recorder, [own for own, _, _ in targets], len(profiles))
            check_growth(recorder, targets[0][0])
    return profiles, recorder.results(), recorder.keys or (), recorder.numeric_keys


def _row_targets(rows: list[AuditRow], profiles: list[ScorerProfile]) -> list[_RowTarget]:
    """Return the targets of every row; the rows take turns in the other forms."""
    profile_of = {profile.data_source: profile for profile in profiles}
    targets: list[_RowTarget] = []
    for index, row in enumerate(rows):
        if profile := profile_of.get(row.data_source):
            forms = [form for form in profile.forms[1:] if form.name != "bare"]
            other = Target(row, forms[index % len(forms)]) if forms else None
            targets.append((Target(row, profile.form), other, profile))
    return targets


def _run_attack(
    attack: Attack,
    recorder: CallRecorder,
    rows: list[_RowTarget],
    progress: Callable[[int], object],
) -> AttackResult:
    """Run an attack on all rows that it applies to; holes are also tried in the other forms.

    A program that hangs or ends the scorer does so on every row, and each time costs a timeout or a new
    process: the attack ends with it.
    """
    result, counts = AttackResult.of(attack), Counter[str]()
    most_ends = recorder.ends if attack.task == "program" else math.inf
    has_other_forms = attack.kind == "hole" and not recorder.process.asks_server
    for own, other, profile in rows:
        if not attack.applies_to(own.row):
            continue
        counts[profile.data_source] += 1
        if attack.max_rows and counts[profile.data_source] > attack.max_rows:
            continue
        for target in [own, other] if other and has_other_forms else [own]:
            calls = [
                (replace(target.row, gold=gold), response)
                for gold in attack.golds or [target.row.gold]
                for response in dict.fromkeys(attack.responses(target))
            ]
            if attack.writes_messages:
                calls = [_with_messages(row, conversation(text)) for row, text in calls]
            outcomes = recorder.call_all(calls, most_ends)
            for (row, response), outcome in zip(calls, outcomes, strict=True):
                if outcome is None:
                    continue
                result.tried += 1
                is_rewarded = outcome.score is not None and outcome.score > profile.threshold
                if is_rewarded != (attack.kind == "miss"):
                    result.add_failure(response, row.gold, outcome.summary)
            progress(1)
            if None in outcomes and (recorder.is_stopped or recorder.ends > most_ends):
                recorder.not_run[attack.name] = None
    return result


def _with_messages(row: AuditRow, messages: list[dict[str, Any]]) -> tuple[AuditRow, str]:
    """Return a row as verl's loop for tools passes it to a reward, and the text of the rollout."""
    info = with_messages({**row.extra_info, "num_turns": len(messages) + 1}, messages)
    return replace(row, extra_info=info), text_of_messages(messages)


def profile_scorer(recorder: CallRecorder, rows: Iterable[AuditRow]) -> list[ScorerProfile]:
    """Return a profile for each data source of the rows, in their order."""
    sources: dict[str, list[AuditRow]] = {}
    for row in rows:
        sources.setdefault(row.data_source, []).append(row)
    return [_profile(recorder, source, of_source) for source, of_source in sources.items()]


def profile_forms(process: ScorerProcess) -> tuple[AnswerForm, ...]:
    """Return the forms in which golds are tried: only its own one if the scorer asks a server."""
    own = process.form
    if own is None:
        return FORMS
    others = () if process.asks_server else FORMS
    return (own, *(form for form in others if form("") != own("")))


def _profile(recorder: CallRecorder, source: str, rows: list[AuditRow]) -> ScorerProfile:
    own, forms = recorder.process.form, profile_forms(recorder.process)
    if all(row.problem for row in rows):
        own = SQL_FENCE if isinstance(rows[0].problem, Task) else FENCE
        forms = (own,)
    if all(row.task for row in rows):
        own, forms = WHOLE, (WHOLE,)

    def scores(form: AnswerForm, name: str) -> list[float]:
        """Return the scores of each row's `gold` or `wrong` answer in a form."""
        answers = ((row, form(getattr(Target(row, form), name))) for row in rows)
        outcomes = recorder.call_all([*answers])
        return [_NO_SCORE if o is None or o.score is None else o.score for o in outcomes]

    golds = {form: scores(form, "gold") for form in forms}
    wrongs = {form: scores(form, "wrong") for form in forms}

    def fit(form: AnswerForm) -> tuple[int, int, float]:
        """Return how well a form is rewarded, how many prompts ask for it, and how strict it is."""
        pairs = [*zip(golds[form], wrongs[form], strict=True)]
        mark = form.before.strip().split("{", maxsplit=1)[0]
        prompts = sum(bool(mark) and mark in row.prompt for row in rows)
        margins = [right - wrong for right, wrong in pairs if _NO_SCORE not in (right, wrong)]
        return sum(right > wrong for right, wrong in pairs), prompts, fmean(margins or [0.0])

    best = max(forms, key=fit)
    if own and fit(own)[0] > sum(map(operator.lt, golds[own], wrongs[own])):
        best = own  # otherwise an option may ask for another form than that of `respond`
    right, wrong = _median(golds[best]), _median(wrongs[best])
    profile = ScorerProfile(
        source, len(rows), form=best, forms=(best,), right=right, wrong=wrong, declared=best == own
    )
    paid = {form: sum(score > profile.threshold for score in golds[form]) for form in forms}
    others = [form for form in forms if form != best and 2 * paid[form] >= len(rows)]
    medians = ((_median(golds[form]), _median(wrongs[form])) for form in others)
    known = tuple((r, w) for r, w in medians if r is not None and w is not None)
    return replace(profile, forms=(best, *others), others=known)


def _median(scores: list[float]) -> float | None:
    """Return the median score; None if half of the calls or more have no score."""
    median = statistics.median(scores)
    return None if median == _NO_SCORE else median


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
