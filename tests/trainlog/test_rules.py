"""Each rule finds its problem, with numbers; a healthy run has no finding."""

from __future__ import annotations

import json
from math import exp, nan
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit.launch
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.rules import diagnose, rules
from rewardkit.trainlog.training_run import FIXED, FULL, V1
from tests.tables import every
from tests.trainlog.runs import make_run

RELEASES = Path(rewardkit.launch.__file__).parent / "verl/release_keys"


def healthy(rng, n, limit=1024):
    start, end = rng.uniform(-0.8, 0.4), rng.uniform(0.7, 0.95)
    pace, entropy, grad = rng.uniform(0.02, 0.2), rng.uniform(0.2, 1.5), rng.uniform(0.05, 2)
    length, growth, kl = rng.uniform(100, 400), rng.uniform(0.8, 2.0), rng.uniform(0, 0.003)
    for step in range(1, n + 1):
        skill = 2 / (1 + exp(-pace * step)) - 1
        reward = start + (end - start) * skill + rng.gauss(0, 0.02)
        mean = length * (1 + (growth - 1) * step / n) * rng.uniform(0.97, 1.03)
        took = rng.uniform(80, 100)
        row = {
            **dict.fromkeys(("critic/score/mean", "critic/rewards/mean"), reward),
            "critic/score/max": 1.0, "critic/score/min": -1.0,
            "critic/advantages/max": rng.uniform(1, 3), "critic/advantages/min": -rng.uniform(1, 3),
            "actor/entropy": entropy * (0.3 + 0.7 * exp(-step / 60)) * rng.uniform(0.95, 1.05),
            "actor/kl_loss": kl * step * rng.uniform(0.9, 1.1), "actor/ppo_kl": rng.gauss(0, 1e-4),
            "actor/pg_clipfrac": rng.uniform(0, 0.02), "actor/grad_norm": grad * rng.lognormvariate(0, 0.3),
            "response_length/mean": mean, "response_length/max": min(limit, mean * rng.uniform(2, 6)),
            "response_length/clip_ratio": rng.uniform(0, 0.05), "response/aborted_ratio": 0.0,
            "prompt_length/clip_ratio": 0.0, "prompt_length/max": rng.randint(200, 300),
            "training/rollout_probs_diff_mean": rng.uniform(0.001, 0.004),
            "rollout_corr/rollout_is_mean": rng.uniform(0.95, 1.05),
            "rollout_corr/rollout_is_eff_sample_size": rng.uniform(0.8, 1),
            "global_seqlen/balanced_max": 10_000 + rng.randint(0, 300),
            "global_seqlen/balanced_min": 10_000, "global_seqlen/mean": 10_100,
            "timing_s/reward": took * rng.uniform(0, 0.1), "timing_s/step": took,
        }  # fmt: skip
        if step % 5 == 0:
            row["val-core/set/acc/mean@1"] = 0.5 + reward / 2.5 + rng.gauss(0, 0.003)
        yield step, row


def findings_of(rows, **options):
    return [finding.rule.id for finding in diagnose(make_run(rows, **options)).findings]


@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(["", FIXED, FULL, V1]))
def test_a_healthy_run_has_no_finding(seed, n, era):
    assert findings_of(healthy(Random(seed), n), era=era, data__max_response_length=1024) == []


def broken_run(n=60, **changes):
    rows = dict(healthy(Random(4), n))
    for step, row in rows.items():
        for key, function in changes.items():
            if key in row or key == "groups/zero_variance":
                row[key] = function(step / n, row.get(key, 0.0))
    return make_run(rows, era=FULL)


def constant(value):
    return lambda *_: value


def late(change, start=0.8):
    return lambda progress, value: change(value) if progress > start else value


PROBS, SCORES = "training/rollout_probs_diff_mean", ("critic/score/min", "critic/score/max")
ADVANTAGES = ("critic/advantages/max", "critic/advantages/min")
BROKEN = {
    "nan": {"actor/grad_norm": late(lambda _: nan)},
    "constant_reward": dict.fromkeys(SCORES, constant(0)),
    "mismatch": {PROBS: lambda progress, _: 0.02 * progress},
    "mismatch_mild": {PROBS: constant(0.007)},
    "collapse": {PROBS: late(lambda y: 3 * y), "actor/grad_norm": late(lambda y: 10 * y)},
    "truncation": {"response_length/clip_ratio": lambda at, _: 0.3 * at, "response_length/max": constant(1024)},
    "prompt_truncation": {"prompt_length/clip_ratio": constant(0.2), "prompt_length/max": constant(512)},
    "entropy_collapse": {"actor/entropy": lambda progress, _: exp(-8 * progress)},
    "kl_drift": {"actor/kl_loss": lambda progress, _: 0.01 if progress < 0.8 else 0.5},
    "length_explosion": {"response_length/mean": lambda at, _: 200 if at < 0.8 else 900},
    "validation_flat": {"val-core/set/acc/mean@1": constant(0.4)},
    "reward_lost": {"critic/rewards/mean": lambda at, _: at if at < 0.6 else 1.2 - at},
    "zero_variance": {"groups/zero_variance": constant(0.8)},
    "no_advantage": dict.fromkeys(ADVANTAGES, late(lambda _: 0.0, 0.9)),
    "is_mean": {"rollout_corr/rollout_is_mean": constant(2.5)},
    "is_sample": {"rollout_corr/rollout_is_eff_sample_size": constant(0.1)},
    "clipped": {"actor/pg_clipfrac": constant(0.5)},
    "aborted": {"response/aborted_ratio": constant(0.02)},
    "imbalance": {"global_seqlen/balanced_max": constant(15_000)},
    "slow_reward": {"timing_s/reward": constant(50.0)},
}  # fmt: skip


@every("rule", BROKEN)
def test_each_rule_finds_its_problem_with_numbers(rule):
    findings = {
        finding.rule.id: finding for finding in diagnose(broken_run(n=100, **BROKEN[rule])).findings
    }
    assert {rule} <= set(findings) <= {rule, "reward_lost", "mismatch_mild"}
    finding = findings[rule]
    assert finding.evidence.facts
    spans = [fact.steps for fact in finding.evidence.facts]
    assert all(1 <= first <= last <= 100 for first, last in spans)
    assert finding.rule.meaning["zh"] != finding.rule.meaning["en"]


@pytest.mark.parametrize("n", [100, 110, 120, 140, 150, 200])
def test_a_fall_at_step_90_is_dated_to_step_90_in_a_run_of_any_length(n):
    """The best tenth of 120 steps ended at step 84, wherever the fall was."""
    rng = Random(1)
    rewards = [min(step / 150, 0.4) + rng.gauss(0.3, 0.01) for step in range(1, 90)]
    rewards += [rng.gauss(0.15, 0.01) for _ in range(90, n + 1)]
    rewards[40], entropies = 0.1, [0.6] * 89 + [0.01] * (n - 89)
    rows = enumerate(zip(rewards, entropies, strict=True), start=1)
    run = make_run((i, {"critic/rewards/mean": a, "actor/entropy": b}) for i, (a, b) in rows)
    spans = {finding.rule.id: finding.evidence.steps for finding in diagnose(run).findings}
    assert spans == {"reward_lost": (90, n), "entropy_collapse": (90, n)}


def test_every_rule_has_a_source_a_condition_metrics_and_a_broken_run_in_this_file():
    assert all(rule.source and rule.when and rule.metrics for rule in rules())
    assert {rule.id for rule in rules() if not rule.is_onset} == set(BROKEN)


def steady(**columns):
    """Return 20 steps of metrics, each a value or a function of the step."""
    return {i: {name: y(i) if callable(y) else y for name, y in columns.items()} for i in range(20)}


CUT = {"response_length/clip_ratio": 0.3, "response_length/max": lambda i: 600.0 + i}
PROMPTS = {"prompt_length/clip_ratio": 0.05, "prompt_length/max": 512.0}
OFTEN, LIMIT = {"response_length/max": 512.0}, "data__max_response_length"


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        # 0.9 measures the ratio against the longest of the batch, so the limit must be reached.
        (CUT, {"era": V1}, []),
        (CUT, {"era": V1, LIMIT: 512}, ["truncation"]),
        (CUT, {"era": FULL}, []),
        (CUT, {"era": FULL, LIMIT: 512}, ["truncation"]),
        (CUT | OFTEN, {"era": V1}, ["truncation"]),  # a length that is often the longest
        (PROMPTS, {"era": FULL}, ["prompt_truncation"]),
        (PROMPTS, {"era": FULL, "data__max_prompt_length": 1024}, []),
        (PROMPTS | {"prompt_length/max": lambda i: 500.0 + i % 3}, {"era": FULL}, []),
        (PROMPTS | {"prompt_length/clip_ratio": 1.0}, {"era": V1}, []),  # all of one length
        # A zero with three decimals may be anything below half a thousandth.
        (dict.fromkeys(ADVANTAGES, 0.0), {"era": FIXED}, []),
        (dict.fromkeys(ADVANTAGES, 0.0), {"era": FULL}, ["no_advantage"]),
        ({"critic/score/mean": 0.0}, {}, ["constant_reward"]),
        ({"critic/score/mean": lambda i: 0.25 * (i > 3)}, {}, []),
        ({"critic/score/mean": 0.0}, {"era": FIXED}, []),
        ({"response/aborted_ratio": lambda i: 0.01 * (i == 15)}, {}, []),
        ({"response/aborted_ratio": lambda i: 0.01 * (i in {15, 18})}, {}, ["aborted"]),
    ],
)
def test_limits_and_zeros_are_judged_by_what_the_release_logs(columns, options, expected):
    assert findings_of(steady(**columns), **options) == expected


GROWTH = {"response_length/mean": lambda i: 300 + 45 * i, "actor/kl_loss": lambda i: 0.1 * i}
NORM = {"actor/grad_norm": lambda i: 0.3 * 1.05**i, PROBS: lambda i: 0.0005 * (1 + i / 10)}


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        (["kl_drift", "length_explosion"], GROWTH),
        (["length_explosion"], {"response_length/mean": lambda i: 300 if i < 18 else 1200}),
        (["kl_drift"], {"actor/kl_loss": lambda i: 0.01 if i < 18 else 10}),
        (["collapse"], NORM),
        ([], {"critic/rewards/mean": lambda i: i / 60, **GROWTH}),
    ],
)
def test_steady_and_early_growth_are_found_unless_the_reward_rises(expected, changes):
    rng = Random(4)
    rows = {
        step: {"critic/rewards/mean": 0.5 + rng.gauss(0, 0.02)}
        | {name: function(step) for name, function in changes.items()}
        for step in range(1, 61)
    }
    assert sorted(findings_of(rows)) == expected


def test_a_flat_reward_with_correlated_noise_is_not_a_finding():
    false_alarms = 0
    for seed in range(60):
        rng, noise, rows = Random(seed), 0.0, {}
        for step in range(1, 301):
            noise = 0.7 * noise + rng.gauss(0, 0.1)
            rows[step] = {"critic/rewards/mean": 0.5 + noise}
        false_alarms += bool(findings_of(rows))
    assert false_alarms <= 1


@pytest.mark.parametrize(("gain", "expected"), [(1 / 200, []), (0.0, ["validation_flat"])])
def test_one_rising_data_source_prevents_the_validation_finding(gain, expected):
    rows = {step: {"critic/rewards/mean": step / 100} for step in range(1, 61)}
    for step in range(5, 61, 5):
        rows[step] |= {f"val-core/s{i}/acc/mean@1": 0.3 + gain * step * (i == 4) for i in range(5)}
    assert findings_of(rows) == expected


def test_keys_without_a_plus_exist_in_the_newest_release():
    release_keys = json.loads((RELEASES / "0.9.1.json").read_text())["fsdp"]
    rule_keys = {key for rule in rules() for key in rule.keys}
    assert {key for key in rule_keys if not key.startswith("+")} <= release_keys.keys()
    assert not {key[1:] for key in rule_keys if key.startswith("+")} & release_keys.keys()


def test_errors_come_first():
    findings = diagnose(broken_run(**BROKEN["nan"] | BROKEN["truncation"])).findings
    assert [finding.rule.severity for finding in findings] == ["error", "warning"]


#: Logs of real runs: the era, the last step, the number of steps that grep counts, and findings.
SHARED = {
    "verl-v0.1_ppo_gemma2-2b_gsm8k.log": (FIXED, 105, 106, ""),
    "verl-v0.4_gpg_qwen2-7b_math_megatron.log": (FIXED, 105, 106, ""),
    "verl-v0.5plus_grpo_char_count_README_excerpt.md": (FULL, 1, 2, "truncation"),
    "seed001_npu_dapo_qwen3-32b_step1.log": (FULL, 1, 1, ""),
    "generated_verl-0.9.1_v1_dapo_format.log": (V1, 40, 41, "nan mismatch truncation entropy_collapse"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_real_logs_have_their_steps_and_known_findings(shared, name):
    run = read_run(shared / "logs" / name)
    findings = " ".join(finding.rule.id for finding in diagnose(run).findings)
    assert (run.era, run.steps[-1], len(run.steps), findings) == SHARED[name]
