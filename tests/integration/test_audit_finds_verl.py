"""An audit finds the known faults of verl's own scorers."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from rewardkit.audit import audit
from rewardkit.registry import EVALUATED_BY_VERL
from rewardkit.scorers.math import compute_score

WRAPPERS = Path(__file__).parents[2] / "benchmarks" / "verl_scorers.py"


def row(question, gold, form):
    return {
        "data_source": "x",
        "prompt": [{"role": "user", "content": f"{question} {form}"}],
        "reward_model": {"ground_truth": gold},
        "extra_info": {},
    }


@pytest.fixture(scope="module")
def failures():
    """Audit a scorer; failed attacks by name, with their (response, gold) pairs."""
    reports = {}

    def audit_failures(name, rows):
        if name not in reports:
            reports[name] = audit(f"{WRAPPERS}:{name}", data=rows, seconds=2.0)
        return {
            result.attack: [(pair.response, pair.gold) for pair in result.failures]
            for result in reports[name].failed
        }

    return audit_failures


@pytest.fixture
def gsm8k(failures):
    return failures("gsm8k", [row("What is 9 + 9?", "18", "Answer after ####.")])


@pytest.fixture
def math_dapo(failures):
    golds = ("42", r"\frac{1}{2}")
    return failures("math_dapo", [row("What is it?", g, 'Put it after "Answer:".') for g in golds])


@pytest.fixture
def math_reward(failures):
    golds = ("42", r"\frac{3}{4}", r"\text{Saturday}")
    return failures("math_reward", [row("What is it?", g, r"Use \boxed{}.") for g in golds])


@pytest.fixture
def geo3k(failures):
    pytest.importorskip("mathruler")
    return failures("geo3k", [row("What is it?", "13", r"Use \boxed{}.")])


@pytest.fixture
def prime_math(failures):
    golds = (r"\frac{19}{55}", "50", "2004")
    return failures("prime_math", [row("What is it?", g, r"Use \boxed{}.") for g in golds])


def test_gsm8k_strict_rejects_right_answers(gsm8k):
    assert ("#### $18", "18") in gsm8k["units"]
    assert ("####18", "18") in gsm8k["spacing"]
    assert ("#### **18**", "18") in gsm8k["bold"]
    assert ("#### 18.", "18") in gsm8k["full_stop"]
    assert ("#### 18.0", "18") in gsm8k["trailing_zeros"]


def test_gsm8k_strict_ignores_an_answer_before_300_characters(gsm8k):
    """See verl's pull request 7274."""
    assert gsm8k["before_afterword"]


def test_gsm8k_strict_rewards_hedges_and_merged_digits(gsm8k):
    assert ("#### 18 or 19", "18") in gsm8k["hedge"]
    assert ("#### 1,8", "18") in gsm8k["glued"]
    assert ("#### ,", "") in gsm8k["empty_gold"]


def test_math_dapo_rejects_right_answers(math_dapo):
    assert ("**Answer:** 42", "42") in math_dapo["bold"]
    assert ("Answer: **42**", "42") in math_dapo["bold"]
    assert ("Answer: 42.", "42") in math_dapo["full_stop"]
    assert (r"Answer: \(42\)", "42") in math_dapo["math_marks"]
    assert (r"Answer: \[42\]", "42") in math_dapo["math_marks"]
    assert ("Answer: $$42$$", "42") in math_dapo["math_marks"]
    assert ("Answer：42", "42") in math_dapo["full_width"]
    assert ("Answer: 0.5", r"\frac{1}{2}") in math_dapo["decimal_for_fraction"]


def test_math_dapo_rewards_no_answer_if_the_gold_is_empty_or_its_placeholder(math_dapo):
    assert {gold.strip() for _, gold in math_dapo["empty_gold"]} == {""}
    assert ("I do not know.", "[INVALID]") in math_dapo["placeholder_gold"]


def test_math_reward_compares_text(math_reward):
    assert (r"\boxed{0.75}", r"\frac{3}{4}") in math_reward["decimal_for_fraction"]
    assert (r"\boxed{42.0}", "42") in math_reward["trailing_zeros"]
    assert (r"\boxed{Saturday}", r"\text{Saturday}") in math_reward["text_wrapper"]
    assert (r"\boxed{}", "") in math_reward["empty_gold"]


def test_geo3k_rewards_text_without_a_box_if_the_gold_is_none(geo3k):
    """mathruler returns the text "None" for a response without a box."""
    assert ("I do not know.", "None") in geo3k["placeholder_gold"]


def test_prime_math_runs_code_of_the_response(prime_math):
    """See verl's issue 5331."""
    assert prime_math["runs_code"]


def test_prime_math_has_a_tolerance_and_accepts_a_factor_of_a_hundred(prime_math):
    assert (r"\boxed{0.50}", "50") in prime_math["hundredfold"]
    assert (r"\boxed{2004.1002}", "2004") in prime_math["near_number"]


def test_prime_math_hangs(prime_math):
    assert any("9**9**9**9" in response for response, _ in prime_math["hangs"])


def test_verl_s_default_reward_runs_the_answers_of_the_sources_that_we_name_and_of_no_other():
    """CVE-2026-6878, in both releases; our scorer of the same rows runs nothing."""
    from verl.utils.reward_score import default_compute_score

    with tempfile.TemporaryDirectory(prefix=f"verl{os.getpid()}x", dir="/tmp") as name:
        marker = Path(name.replace("_", "")).with_suffix(".ran")  # verl cuts text at an underscore
        response = rf"\boxed{{open('{marker}','w') or 1\pi}}"
        for source in ("openai/gsm8k", "lighteval/MATH", "math_dapo", *sorted(EVALUATED_BY_VERL)):
            with suppress(Exception):
                default_compute_score(source, response, "50")
            assert marker.exists() == (source in EVALUATED_BY_VERL), source
            marker.unlink(missing_ok=True)
            compute_score(source, response, "50")
            assert not marker.exists()


def test_an_audit_of_verl_says_which_answers_verl_runs_and_finds_it():
    row = {
        "data_source": "numina_olympiads",
        "prompt": [{"role": "user", "content": r"What is it? Use \boxed{}."}],
        "reward_model": {"ground_truth": "50"},
        "extra_info": {},
    }
    said = []
    report = audit("verl", data=[row], seconds=2.0, announce=said.append)
    assert "CVE-2026-6878" in said[0]
    assert report.scorer == "verl"
    assert "runs_code" in {result.attack for result in report.failed}
