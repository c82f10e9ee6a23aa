"""What is known of verl's own scorers, their issues and ours of it, is found by an audit."""

from pathlib import Path

import pytest

from rewardkit.audit import audit

WRAPPERS = Path(__file__).parents[2] / "benchmarks" / "verl_scorers.py"


def row(question, gold, form):
    return {
        "data_source": "x",
        "prompt": [{"role": "user", "content": f"{question} {form}"}],
        "reward_model": {"ground_truth": gold},
        "extra_info": {},
    }


@pytest.fixture(scope="module")
def found(v9):
    """A scorer's findings that failed, by name, and their pairs as (response, gold)."""
    if not v9:
        pytest.skip("the findings are those of 0.9.1")
    reports = {}

    def go(name, rows):
        if name not in reports:
            reports[name] = audit(f"{WRAPPERS}:{name}", data=rows, seconds=5.0)
        return {
            finding.attack: [(pair.response, pair.gold) for pair in finding.failures]
            for finding in reports[name].failed
        }

    return go


@pytest.fixture
def gsm8k(found):
    return found("gsm8k", [row("What is 9 + 9?", "18", "Answer after ####.")])


@pytest.fixture
def math_dapo(found):
    golds = ("42", r"\frac{1}{2}")
    return found("math_dapo", [row("What is it?", g, 'Put it after "Answer:".') for g in golds])


@pytest.fixture
def math_reward(found):
    golds = ("42", r"\frac{3}{4}", r"\text{Saturday}")
    return found("math_reward", [row("What is it?", g, r"Use \boxed{}.") for g in golds])


@pytest.fixture
def geo3k(found):
    pytest.importorskip("mathruler")
    return found("geo3k", [row("What is it?", "13", r"Use \boxed{}.")])


@pytest.fixture
def prime_math(found):
    golds = (r"\frac{19}{55}", "50", "2004")
    return found("prime_math", [row("What is it?", g, r"Use \boxed{}.") for g in golds])


def test_gsm8k_strict_rejects_right_answers(gsm8k):
    assert ("#### $18", "18") in gsm8k["units"]
    assert ("####18", "18") in gsm8k["spacing"]
    assert ("#### **18**", "18") in gsm8k["bold"]
    assert ("#### 18.", "18") in gsm8k["full_stop"]
    assert ("#### 18.0", "18") in gsm8k["trailing_zeros"]


def test_gsm8k_strict_sees_no_answer_before_300_characters(gsm8k):
    """verl's pull request 7274."""
    assert gsm8k["before_afterword"]


def test_gsm8k_strict_pays_hedges_and_merged_digits(gsm8k):
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


def test_math_dapo_pays_no_answer_where_the_gold_is_empty_or_its_own_word(math_dapo):
    assert {gold.strip() for _, gold in math_dapo["empty_gold"]} == {""}
    assert ("I do not know.", "[INVALID]") in math_dapo["placeholder_gold"]


def test_math_reward_compares_text(math_reward):
    assert (r"\boxed{0.75}", r"\frac{3}{4}") in math_reward["decimal_for_fraction"]
    assert (r"\boxed{42.0}", "42") in math_reward["trailing_zeros"]
    assert (r"\boxed{Saturday}", r"\text{Saturday}") in math_reward["text_wrapper"]
    assert (r"\boxed{}", "") in math_reward["empty_gold"]


def test_geo3k_pays_text_without_a_box_where_the_gold_is_none(geo3k):
    """mathruler returns the text "None" if there is no box."""
    assert ("I do not know.", "None") in geo3k["placeholder_gold"]


def test_prime_math_runs_what_the_response_says(prime_math):
    """verl's issue 5331."""
    assert prime_math["runs_code"]


def test_prime_math_has_a_tolerance_and_forgives_a_factor_of_a_hundred(prime_math):
    assert (r"\boxed{0.50}", "50") in prime_math["hundredfold"]
    assert (r"\boxed{2004.1002}", "2004") in prime_math["near_number"]


def test_prime_math_hangs(prime_math):
    assert any("9**9**9**9" in response for response, _ in prime_math["hangs"])
