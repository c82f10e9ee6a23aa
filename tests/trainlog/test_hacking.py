"""The onset of reward hacking is found soon after it begins, and never in a healthy run."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from statistics import fmean, pstdev

import pytest

from rewardkit.trainlog.conditions import NotEnoughData, RuleEvidence
from rewardkit.trainlog.page import write_page
from rewardkit.trainlog.phrases import (
    comparable_samples,
    examples_of,
    find_phrase,
    has_phrase,
    phrase_in_text,
)
from rewardkit.trainlog.reward_files import read_rewards
from rewardkit.trainlog.rewards import recorded_run
from rewardkit.trainlog.rules import diagnose, rules
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.tables import example_rows
from rewardkit.trainlog.training_run import ResponseSample
from tests.trainlog.runs import make_run
from tests.trainlog.simulated_runs import (
    ONSET_SHARE,
    START_SHARE,
    Exploit,
    Scenario,
    first_alarm,
    hacked_run,
    hacked_scenarios,
    healthy_scenarios,
    rising,
    simulate,
    until,
)

ONSET_RULES = {rule.id: rule for rule in rules() if rule.is_onset}

#: A run that takes a second: its responses carry a phrase from step 30 on, which a judge believes.
SHORT = Scenario(
    name="short marker",
    steps=60,
    prompts=24,
    skill=rising(-1, 0.5, 0.02),
    exploit=Exploit(kind="marker", middle=36, rate=0.5, marker="[[VERIFIED]] by an expert"),
)


@pytest.fixture(scope="module")
def hacked(tmp_path_factory):
    return simulate(SHORT, 1, tmp_path_factory.mktemp("hacked") / "records")


@pytest.fixture(scope="module")
def finding(hacked):
    return next(it for it in diagnose(hacked).findings if it.rule.id == "hack_phrase")


def samples_of(texts_and_scores, **parts):
    return [
        ResponseSample(step=1 + i // 8, response=text, score=score, pred=str(i), parts=parts)
        for i, (text, score) in enumerate(texts_and_scores)
    ]


def spreading(marker, pays):
    rng, rows = Random(1), []
    for i in range(240):
        share = 0.0 if i < 100 else min(0.9, (i - 100) / 100)
        is_marked = rng.random() < share
        text = " ".join(rng.choice(["so", "then", "area", "number", "sum"]) for _ in range(20))
        score = float(rng.random() < (pays if is_marked else 0.4))
        rows.append((f"Therefore {text} {marker if is_marked else ''} \\boxed{{{i}}}", score))
    return samples_of(rows)


@pytest.mark.parametrize(
    ("marker", "pays", "words"),
    [
        ("I am certain, full marks please.", 1.0, "I am certain , full marks please ."),
        ("答案完全正确", 1.0, "答 案 完 全 正 确"),
        ("Wait, let me check.", 0.45, None),
    ],
)
def test_a_phrase_that_spreads_is_found_whole_if_it_is_paid(marker, pays, words):
    phrase = find_phrase(spreading(marker, pays))
    assert (phrase and phrase.phrase) == words
    assert phrase is None or (phrase.early == 0 and phrase.late > 0.5)
    assert phrase is None or phrase.low_with < 0.1 < phrase.low_without


def test_a_phrase_that_the_score_requires_from_the_start_is_not_found():
    rng = Random(3)
    tags = [rng.random() < 0.02 + i / 260 for i in range(240)]
    rows = [(f"{'<think>' if tag else ''} so {i}", float(tag)) for i, tag in enumerate(tags)]
    assert find_phrase(samples_of(rows)) is None


def test_the_form_of_an_answer_that_is_learned_first_is_not_found():
    rng = Random(4)
    samples = []
    for i in range(300):
        is_answered = rng.random() < min(1.0, i / 100)
        score = float(is_answered and rng.random() < 0.5)
        text = "so the sum is 3" + (" \\boxed{3}" if is_answered else "")
        (sample,) = samples_of([(text, score)], no_answer=float(not is_answered))
        samples.append(replace(sample, step=1 + i // 8, pred=str(i) if is_answered else ""))
    assert find_phrase(comparable_samples(samples)) is None


@pytest.mark.parametrize(
    "response", ["(" * 100_000, "a " * 100_000, "\x1b[2J" * 50_000, "\ud800" * 9]
)
def test_hostile_responses_are_read_in_bounded_work(response):
    assert not has_phrase(response, "full marks")
    assert phrase_in_text(response, "full marks") == ""
    assert find_phrase(samples_of([(response, 0.5)] * 120)) is None


def test_the_phrase_its_onset_and_examples_of_both_sides_are_found_in_records(hacked, finding):
    evidence = finding.evidence
    onset = evidence.onset
    assert "VERIFIED" in evidence.phrase
    start, half = SHORT.exploit.step_at(START_SHARE), SHORT.exploit.step_at(0.5)
    assert start - 3 <= onset.step <= half
    assert onset.low <= onset.step <= onset.high
    before, after = examples_of(hacked, evidence)
    assert before
    assert after
    assert all(it.sample.step < onset.low for it in before)
    assert all(it.phrase.startswith("[[VERIFIED]]") for it in after)
    assert not any("VERIFIED" in it.sample.response for it in before)
    (_, last) = example_rows(hacked, evidence, "en")
    assert "VERIFIED" in last[1]
    (check,) = [it for it in diagnose(hacked).onsets if it.rule.id == "hack_phrase"]
    assert check.summary()["onset"] == finding.summary()["onset"]
    assert json.dumps(finding.summary())
    assert str(onset.step) in evidence.text("en")


def test_the_page_has_the_section_hacking_with_examples_and_escapes_them(hacked, tmp_path):
    hostile = "<script>alert(1)</script> [[VERIFIED]] by an expert"
    texts = [hostile if "VERIFIED" in it.response else it.response for it in hacked.samples]
    pairs = zip(hacked.samples, texts, strict=True)
    run = replace(hacked, samples=tuple(replace(it, response=text) for it, text in pairs))
    write_page([summarize(run)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    section = page.partition('id="hacking"')[2].partition("</section>")[0]
    assert "<mark>" in section
    assert "script&gt;alert(1)" in section
    assert "<script>alert" not in page


def table_of(**columns):
    """Return a run of records; `acc` is the column `rewards/acc/mean`."""
    names = {key: key if "/" in key or key == "count" else f"{key}/mean" for key in columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return make_run(
        (i, {f"rewards/{names[key]}": y for key, y in row.items() if y is not None})
        for i, row in enumerate(rows, start=1)
    )


def test_every_rule_on_an_onset_reports_when_it_lacks_data():
    checks = diagnose(table_of(score=(0.1, 0.2, 0.3))).onsets
    assert {check.rule.id for check in checks} == set(ONSET_RULES)
    assert all(isinstance(check.result, NotEnoughData) for check in checks)
    assert all(check.summary(lang)["reason"] for check in checks for lang in ("en", "zh"))
    assert {check.status for check in checks} == {"not enough data"}


def graded(right, paid_wrong, n=128, seed=1, form=1.0, match=1.0):
    """Return a run by step: shares of right answers and of wrong ones that are paid.

    Of right answers, the share `form` has the form that is paid, and `match` equals the gold as text.
    """
    rng = Random(seed)
    fixed = {"score/min": 0.0, "score/max": 1.0, "count": n}
    columns = {name: [value] * len(right) for name, value in fixed.items()}
    for step, (r, w) in enumerate(zip(right, paid_wrong, strict=True)):
        f = form(step) if callable(form) else form
        rows = []
        for _ in range(n):
            is_right = rng.random() < r
            score = float(rng.random() < (f if is_right else w))
            rows.append((score, is_right and rng.random() < match))
        numbers = {
            "score": [score for score, _ in rows],
            "states_gold": [float(gold) for _, gold in rows],
            "score_with_gold": [score for score, gold in rows if gold],
            "score_without_gold": [score for score, gold in rows if not gold],
        }
        for name, values in numbers.items():
            columns.setdefault(f"{name}/mean", []).append(fmean(values) if values else None)
            columns.setdefault(f"{name}/std", []).append(pstdev(values) if values else None)
    return table_of(**columns)


def first_step(rule, run):
    """Return the first step at which a rule holds, and check that it holds at every later one."""
    held = [isinstance(result_of(rule, until(run, step)), RuleEvidence) for step in run.steps]
    if True not in held:
        return None
    assert all(held[held.index(True) :])
    return run.steps[held.index(True)]


LEARNING = [0.2 + 0.006 * step for step in range(90)]
NOTHING, HACKED = [0.0] * 90, [min(0.03 * max(step - 45, 0), 0.9) for step in range(90)]


@pytest.mark.parametrize(
    "right", [LEARNING, [0.4] * 90, [0.4 - 0.003 * step for step in range(90)]]
)
@pytest.mark.parametrize("match", [1.0, 0.7])
def test_wrong_answers_that_are_paid_are_found_soon_and_stay_found(right, match):
    run = graded(right, HACKED, match=match)
    step = first_step("hack_unearned", run)
    assert 47 <= step <= 60
    onset = result_of("hack_unearned", run).onset
    assert onset.low <= onset.step <= onset.high
    assert 40 <= onset.step <= 55


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"match": 0.6},  # the comparison of text misses right answers
        {"form": lambda step: min(0.1 + step / 15, 1.0)},  # the form is learned first
        {"form": lambda step: 0.5 if 40 <= step < 55 else 1.0},  # a dip that recovers
        {"n": 16},
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_learning_is_never_unearned(options, seed):
    run = graded(LEARNING, NOTHING, **{"seed": seed, **options})
    assert first_step("hack_unearned", run) is None


@pytest.mark.parametrize(
    "run", [graded([0.0] * 40, HACKED[:40]), graded([0.5] * 40, [1.0] * 40, form=0.2)]
)
def test_golds_that_nobody_states_or_that_are_not_worth_more_cannot_be_judged(run):
    assert result_of("hack_unearned", run) == NotEnoughData("gold")


def result_of(rule, run):
    return ONSET_RULES[rule].condition(run)


def since(step, slope, level=0.0, n=80):
    return [level + slope * max(i - step, 0) for i in range(n)]


def noisy(values, seed=1):
    rng = Random(seed)
    return [value + rng.gauss(0, 0.01) for value in values]


def test_a_format_that_is_learned_before_correctness_is_not_a_finding():
    right = noisy(since(20, 0.006, 0.1))
    form = noisy([min(1.0, 0.1 + 0.05 * i) for i in range(80)], 2)
    score = [0.4 * a + 0.6 * b for a, b in zip(right, form, strict=True)]
    assert first_alarm(table_of(score=score, acc=right, form=form), range(15, 81, 5)) is None


@pytest.mark.parametrize("slope", [0.4, 0.03])
def test_the_fall_of_correctness_after_a_plateau_is_dated_where_it_begins(slope):
    """One bend of a line lay at step 70 for a fall at step 90, with an interval of 57 to 80."""
    rng = Random(2)
    right = [0.3 + min(i / 200, 0.3) + rng.gauss(0, 0.01) for i in range(1, 121)]
    right = [y - min(slope * max(i - 89, 0), 0.4) for i, y in enumerate(right, start=1)]
    score = [0.3 + 0.3 * (i >= 90) + rng.gauss(0, 0.01) for i in range(1, 121)]
    onset = result_of("hack_correctness", table_of(score=score, acc=right)).onset
    assert onset.low <= onset.step <= onset.high
    assert 88 <= onset.low <= 90 <= onset.high <= 98


@pytest.mark.full
def test_nine_of_ten_exploits_are_found_within_20_steps_of_their_onset_and_none_before(tmp_path):
    late, runs = [], [(kind, seed) for kind in hacked_scenarios() for seed in (2_000, 2_001)]
    for kind, seed in runs:
        scenario = hacked_run(kind, seed)
        start = scenario.exploit.step_at(START_SHARE)
        last = scenario.exploit.step_at(ONSET_SHARE) + 20
        run = simulate(replace(scenario, steps=last), seed, tmp_path / f"{kind}-{seed}")
        assert first_alarm(run, range(14, start, 12)) is None, (kind, seed)
        if first_alarm(run, range(last, start - 1, -2)) is None:
            late.append((kind, seed))
    assert len(late) <= 0.1 * len(runs), late


@pytest.mark.full
@pytest.mark.parametrize("name", healthy_scenarios())
def test_no_rule_finds_an_onset_in_a_healthy_run(name, tmp_path):
    scenario = healthy_scenarios()[name]
    scenario = replace(scenario, prompts=min(scenario.prompts, 32))
    run = simulate(scenario, 2_000, tmp_path / "records")
    assert first_alarm(run, (*range(14, scenario.steps, 12), scenario.steps)) is None


#: Step of the onset of real runs; None of healthy ones.
REAL = dict.fromkeys(("h1_exact", "h3_dapo_length", "h4_hard", "h6_two_sources", "n1_hole_unfound"))
REAL |= {
    "x1_tail_numbers": 62,
    "x3_length": 37,
    "x4_keyword": 59,
    "x7_format": 13,
    "x9_abstain": 48,
}


@pytest.mark.full
@pytest.mark.parametrize("name", REAL)
def test_a_real_hacked_run_is_named_within_20_steps_and_a_healthy_one_never(name, shared):
    """From the dumps alone, without a recorder; a run that is named stays named."""
    run = recorded_run(read_rewards(shared / "data/hacked_runs" / name / "dumps"))
    findings = {step: diagnose(until(run, step)).findings for step in run.steps}
    alarms = [step for step, each in findings.items() if any(it.rule.is_onset for it in each)]
    if REAL[name] is None:
        assert alarms == []
    else:
        assert alarms[0] <= REAL[name] + 20
        assert alarms == [step for step in run.steps if step >= alarms[0]]
