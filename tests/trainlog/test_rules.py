"""Each rule finds its problem, with numbers; a healthy run has no finding."""

from __future__ import annotations

import json
import os
from math import exp, nan
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit.launch
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.rules import diagnose, rules
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import FIXED, FULL, V1
from tests.tables import every

RELEASES = Path(rewardkit.launch.__file__).parent / "verl/release_keys"


def healthy(rng, n, limit=1024):
    """Return the metrics of `n` steps of a run that learns, with realistic noise."""
    start, end = rng.uniform(-0.8, 0.5), rng.uniform(0.6, 0.95)
    pace, entropy, grad = rng.uniform(0.02, 0.2), rng.uniform(0.2, 1.5), rng.uniform(0.05, 2)
    length, growth, kl = rng.uniform(100, 400), rng.uniform(0.8, 2.0), rng.uniform(0, 0.003)
    for step in range(1, n + 1):
        skill = 2 / (1 + exp(-pace * step)) - 1
        reward = start + (end - start) * skill + rng.gauss(0, 0.02)
        mean = length * (1 + (growth - 1) * step / n) * rng.uniform(0.97, 1.03)
        took = rng.uniform(80, 100)
        row = {
            "critic/score/mean": reward,
            "critic/score/max": 1.0,
            "critic/score/min": -1.0,
            "critic/rewards/mean": reward,
            "critic/advantages/max": rng.uniform(1, 3),
            "critic/advantages/min": -rng.uniform(1, 3),
            "actor/entropy": entropy * (0.3 + 0.7 * exp(-step / 60)) * rng.uniform(0.95, 1.05),
            "actor/kl_loss": kl * step * rng.uniform(0.9, 1.1),
            "actor/pg_clipfrac": rng.uniform(0, 0.02),
            "actor/ppo_kl": rng.gauss(0, 1e-4),
            "actor/grad_norm": grad * rng.lognormvariate(0, 0.3),
            "response_length/mean": mean,
            "response_length/max": min(limit, mean * rng.uniform(2, 6)),
            "response_length/clip_ratio": rng.uniform(0, 0.05),
            "prompt_length/clip_ratio": 0.0,
            "prompt_length/max": rng.randint(200, 300),
            "response/aborted_ratio": 0.0,
            "training/rollout_probs_diff_mean": rng.uniform(0.001, 0.004),
            "rollout_corr/rollout_is_mean": rng.uniform(0.95, 1.05),
            "rollout_corr/rollout_is_eff_sample_size": rng.uniform(0.8, 1),
            "global_seqlen/balanced_max": 10_000 + rng.randint(0, 300),
            "global_seqlen/balanced_min": 10_000,
            "global_seqlen/mean": 10_100,
            "timing_s/reward": took * rng.uniform(0, 0.1),
            "timing_s/step": took,
        }
        if step % 5 == 0:
            row["val-core/set/acc/mean@1"] = 0.5 + reward / 2.5 + rng.gauss(0, 0.01)
        yield step, row


def run_of(steps, *, era=FULL, config=None):
    builder = TableBuilder(config=config or {})
    for step, row in steps:
        builder.add(step, row, "here")
    return builder.run(name="run", path="run.log", source="console", era=era)


@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(["", FIXED, FULL, V1]))
def test_a_healthy_run_has_no_finding(seed, n, era):
    run = run_of(healthy(Random(seed), n), era=era, config={"data.max_response_length": 1024})
    assert [finding.rule.id for finding in diagnose(run)] == []


def broken_run(n=60, era=FULL, config=None, **changes):
    """Return a healthy run whose given metrics are functions of (progress from 0 to 1, value)."""
    steps = []
    for step, row in healthy(Random(4), n):
        for key, function in changes.items():
            name = key.replace("__", "/")
            if name in row or key in EXTRA:
                row[EXTRA.get(key, name)] = function(step / n, row.get(name, 0.0))
        steps.append((step, row))
    return run_of(steps, era=era, config=config)


EXTRA = {"flat_groups": "groups/zero_variance", "val": "val-core/set/acc/mean@1"}


def constant(value):
    return lambda *_: value


BROKEN = {
    "nan": {"actor__grad_norm": lambda progress, value: nan if progress > 0.8 else value},
    "constant_reward": {"critic__score__min": constant(0), "critic__score__max": constant(0)},
    "mismatch": {"training__rollout_probs_diff_mean": lambda progress, _: 0.02 * progress},
    "mismatch_mild": {"training__rollout_probs_diff_mean": constant(0.007)},
    "collapse": {
        "training__rollout_probs_diff_mean": lambda progress, value: (
            value * (1 if progress < 0.8 else 3)
        ),
        "actor__grad_norm": lambda progress, value: value * (1 if progress < 0.8 else 10),
    },
    "truncation": {
        "response_length__clip_ratio": lambda progress, _: 0.3 * progress,
        "response_length__max": constant(1024),
    },
    "prompt_truncation": {
        "prompt_length__clip_ratio": constant(0.2),
        "prompt_length__max": constant(512),
    },
    "entropy_collapse": {"actor__entropy": lambda progress, _: exp(-8 * progress)},
    "kl_drift": {"actor__kl_loss": lambda progress, _: 0.01 if progress < 0.8 else 0.5},
    "length_explosion": {
        "response_length__mean": lambda progress, _: 200 if progress < 0.8 else 900
    },
    "validation_flat": {"val": constant(0.4)},
    "reward_lost": {
        "critic__rewards__mean": lambda progress, _: progress if progress < 0.6 else 1.2 - progress
    },
    "zero_variance": {"flat_groups": constant(0.8)},
    "no_advantage": {
        "critic__advantages__max": lambda progress, value: 0.0 if progress > 0.9 else value,
        "critic__advantages__min": lambda progress, value: 0.0 if progress > 0.9 else value,
    },
    "is_mean": {"rollout_corr__rollout_is_mean": constant(2.5)},
    "is_sample": {"rollout_corr__rollout_is_eff_sample_size": constant(0.1)},
    "clipped": {"actor__pg_clipfrac": constant(0.5)},
    "aborted": {"response__aborted_ratio": constant(0.02)},
    "imbalance": {"global_seqlen__balanced_max": constant(15_000)},
    "slow_reward": {"timing_s__reward": lambda *_: 50.0},
}


@every("rule", BROKEN)
def test_each_rule_finds_its_problem_with_numbers(rule):
    findings = {finding.rule.id: finding for finding in diagnose(broken_run(n=100, **BROKEN[rule]))}
    assert rule in findings
    finding = findings[rule]
    assert finding.evidence.facts
    assert all(
        1 <= first <= last <= 100 for first, last in (f.steps for f in finding.evidence.facts)
    )
    assert finding.rule.meaning["zh"] != finding.rule.meaning["en"]
    assert set(findings) <= {rule, "reward_lost", "mismatch_mild"}


@pytest.mark.parametrize("n", [100, 110, 120, 140, 150, 200])
def test_a_fall_at_step_90_is_dated_to_step_90_in_a_run_of_any_length(n):
    """The best tenth of 120 steps ended at step 84, wherever the fall was."""
    rng = Random(1)
    rewards = [min(step / 150, 0.4) + rng.gauss(0.3, 0.01) for step in range(1, 90)]
    rewards += [rng.gauss(0.15, 0.01) for _ in range(90, n + 1)]
    rewards[40], entropies = 0.1, [0.6] * 89 + [0.01] * (n - 89)
    rows = zip(rewards, entropies, strict=True)
    steps = [
        (step, {"critic/rewards/mean": reward, "actor/entropy": entropy})
        for step, (reward, entropy) in enumerate(rows, start=1)
    ]
    found = {finding.rule.id: finding.evidence.steps for finding in diagnose(run_of(steps))}
    assert found == {"reward_lost": (90, n), "entropy_collapse": (90, n)}


def test_every_rule_but_those_of_hacking_has_a_broken_run_in_this_file():
    assert {rule.id for rule in rules() if not rule.is_onset} == set(BROKEN)


def test_every_rule_has_a_source_a_condition_and_metrics():
    assert all(rule.source and rule.when and rule.metrics for rule in rules())


@pytest.mark.parametrize(
    ("era", "config", "expected"),
    [
        (V1, {}, False),
        (V1, {"data.max_response_length": 1024}, False),
        (V1, {"data.max_response_length": 512}, True),
        (FULL, {}, False),
        (FULL, {"data.max_response_length": 1024}, False),
        (FULL, {"data.max_response_length": 512}, True),
        ("", {}, False),
    ],
)
def test_truncation_requires_the_limit_if_the_ratio_is_relative_to_the_longest(
    era, config, expected
):
    steps = [
        (i, {"response_length/clip_ratio": 0.3, "response_length/max": 600.0 + i})
        for i in range(20)
    ]
    ids = [finding.rule.id for finding in diagnose(run_of(steps, era=era, config=config))]
    assert ids == (["truncation"] if expected else [])


def test_a_length_that_is_often_the_longest_counts_as_the_limit():
    steps = [
        (i, {"response_length/clip_ratio": 0.3, "response_length/max": 512.0}) for i in range(20)
    ]
    (finding,) = diagnose(run_of(steps, era=V1))
    assert finding.rule.id == "truncation"
    assert "512" in finding.evidence.facts[-1].text()


def test_prompts_of_equal_length_do_not_count_as_cut():
    steps = [(i, {"prompt_length/clip_ratio": 1.0, "prompt_length/max": 40.0}) for i in range(20)]
    assert diagnose(run_of(steps, era=V1)) == []


@pytest.mark.parametrize(
    ("longest", "config", "expected"),
    [
        (lambda i: 512.0, {}, ["prompt_truncation"]),
        (lambda i: 500.0 + i % 3, {}, []),
        (lambda i: 512.0, {"data.max_prompt_length": 512}, ["prompt_truncation"]),
        (lambda i: 512.0, {"data.max_prompt_length": 1024}, []),
    ],
)
def test_prompts_are_cut_only_if_the_limit_is_reached_or_unknown(longest, config, expected):
    steps = [
        (i, {"prompt_length/clip_ratio": 0.05, "prompt_length/max": longest(i)}) for i in range(20)
    ]
    ids = [finding.rule.id for finding in diagnose(run_of(steps, era=FULL, config=config))]
    assert ids == expected


def flat(rng, **changes):
    """Return 60 steps with a constant reward, and other metrics as functions of the step."""
    for step in range(1, 61):
        row = {name.replace("__", "/"): function(step) for name, function in changes.items()}
        yield step, {"critic/rewards/mean": 0.5 + rng.gauss(0, 0.02)} | row


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("length_explosion", {"response_length__mean": lambda step: 300 + 45 * step}),
        ("length_explosion", {"response_length__mean": lambda i: 300 if i < 18 else 1200}),
        ("kl_drift", {"actor__kl_loss": lambda step: 0.1 * step}),
        ("kl_drift", {"actor__kl_loss": lambda step: 0.01 if step < 18 else 10}),
        (
            "collapse",
            {
                "actor__grad_norm": lambda step: 0.3 * 1.05**step,
                "training__rollout_probs_diff_mean": lambda step: 0.0005 * (1 + step / 10),
            },
        ),
    ],
)
def test_steady_and_early_growth_are_found(rule, changes):
    ids = [finding.rule.id for finding in diagnose(run_of(flat(Random(4), **changes)))]
    assert ids == [rule]


def test_growth_with_a_rising_reward_is_not_a_finding():
    rising = {
        "critic__rewards__mean": lambda step: step / 60,
        "response_length__mean": lambda step: 300 + 45 * step,
        "actor__kl_loss": lambda step: 0.1 * step,
    }
    assert diagnose(run_of(flat(Random(4), **rising))) == []


def test_a_flat_reward_with_correlated_noise_is_not_a_finding():
    false_alarms = 0
    for seed in range(60):
        rng, noise, steps = Random(seed), 0.0, []
        for step in range(1, 301):
            noise = 0.7 * noise + rng.gauss(0, 0.1)
            steps.append((step, {"critic/rewards/mean": 0.5 + noise}))
        false_alarms += bool(diagnose(run_of(steps)))
    assert false_alarms <= 1


@pytest.mark.parametrize(("score", "rules"), [(0.0, ["constant_reward"]), (0.25, [])])
def test_a_constant_mean_is_a_constant_reward_in_a_log_without_its_range(score, rules):
    steps = [(i, {"critic/score/mean": 0.0 if i < 3 else score}) for i in range(1, 31)]
    assert [finding.rule.id for finding in diagnose(run_of(steps))] == rules
    assert diagnose(run_of(steps, era=FIXED)) == []


def test_one_rising_data_source_prevents_the_validation_finding():
    def run(score_at):
        for step in range(1, 61):
            scores = {f"val-core/s{i}/acc/mean@1": 0.3 for i in range(5)}
            scores["val-core/s4/acc/mean@1"] = score_at(step)
            yield step, {"critic/rewards/mean": step / 100} | (scores if step % 5 == 0 else {})

    assert diagnose(run_of(run(lambda step: 0.3 + step / 200))) == []
    (finding,) = diagnose(run_of(run(lambda _: 0.3)))
    assert finding.rule.id == "validation_flat"
    assert len(finding.evidence.facts) == 8


def test_one_step_with_an_aborted_response_is_not_a_finding():
    def run(bad):
        return run_of((i, {"response/aborted_ratio": 0.01 if i in bad else 0}) for i in range(20))

    assert diagnose(run({15})) == []
    assert [finding.rule.id for finding in diagnose(run({15, 18}))] == ["aborted"]


def test_keys_without_a_plus_exist_in_the_newest_release():
    release_keys = json.loads((RELEASES / "0.9.1.json").read_text())["fsdp"]
    rule_keys = {key for rule in rules() for key in rule.keys}
    assert {key for key in rule_keys if not key.startswith("+")} <= release_keys.keys()
    assert not {key[1:] for key in rule_keys if key.startswith("+")} & release_keys.keys()


def test_a_zero_with_three_decimals_is_not_a_missing_advantage():
    steps = [(i, {"critic/advantages/max": 0.0, "critic/advantages/min": 0.0}) for i in range(20)]
    assert diagnose(run_of(steps, era=FIXED)) == []


def test_errors_come_first():
    changes = BROKEN["nan"] | BROKEN["truncation"]
    assert [finding.rule.severity for finding in diagnose(broken_run(**changes))] == [
        "error",
        "warning",
    ]


SHARED = {
    "verl-v0.1_ppo_gemma2-2b_gsm8k.log": [],
    "verl-v0.4_gpg_qwen2-7b_math_megatron.log": [],
    "verl-v0.5plus_grpo_char_count_README_excerpt.md": ["truncation"],
    "seed001_npu_dapo_qwen3-32b_step1.log": [],
    "generated_verl-0.9.1_v1_dapo_format.log": [
        "nan",
        "mismatch",
        "truncation",
        "entropy_collapse",
    ],
}


@pytest.mark.skipif(not os.environ.get("REWARDKIT_SHARED"), reason="REWARDKIT_SHARED is unset")
@pytest.mark.parametrize("name", SHARED)
def test_real_logs_have_their_known_findings(shared, name):
    findings = diagnose(read_run(shared / "logs" / name))
    assert [finding.rule.id for finding in findings] == SHARED[name]
