"""An audit finds the known faults of verl's own scorers."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from rewardkit.audit import audit
from rewardkit.audit.program_attacks import packaged_problems
from rewardkit.registry import VERL_EVALUATES
from rewardkit.scorers.math import compute_score

WRAPPERS = Path(__file__).parents[2] / "benchmarks" / "verl_scorers.py"


#: Scorers of verl, the form that they ask for, and golds; attacks that they fall for, with a response.
SCORERS = {
    "gsm8k": ("Answer after ####.", ["18"]),
    "math_dapo": ('Put it after "Answer:".', ["42", r"\frac{1}{2}"]),
    "math_reward": (r"Use \boxed{}.", ["42", r"\frac{3}{4}", r"\text{Saturday}"]),
    "geo3k": (r"Use \boxed{}.", ["13"]),
    "prime_math": (r"Use \boxed{}.", [r"\frac{19}{55}", "50", "2004"]),
}
# fmt: off
FAULTS = {
    "gsm8k": [  # it rejects right answers, and one before the last 300 characters (pull request 7274)
        ("units", "#### $18", "18"), ("spacing", "####18", "18"), ("bold", "#### **18**", "18"),
        ("full_stop", "#### 18.", "18"), ("trailing_zeros", "#### 18.0", "18"),
        ("hedge", "#### 18 or 19", "18"), ("glued", "#### 1,8", "18"), ("empty_gold", "#### ,", ""),
        ("before_afterword", None, "18"),
    ],
    "math_dapo": [
        ("bold", "**Answer:** 42", "42"), ("bold", "Answer: **42**", "42"),
        ("full_stop", "Answer: 42.", "42"), ("math_marks", r"Answer: \(42\)", "42"),
        ("math_marks", r"Answer: \[42\]", "42"), ("math_marks", "Answer: $$42$$", "42"),
        ("full_width", "Answer：42", "42"), ("decimal_for_fraction", "Answer: 0.5", r"\frac{1}{2}"),
        ("empty_gold", None, ""), ("placeholder_gold", "I do not know.", "[INVALID]"),
    ],
    "math_reward": [  # it compares text
        ("decimal_for_fraction", r"\boxed{0.75}", r"\frac{3}{4}"), ("empty_gold", r"\boxed{}", ""),
        ("trailing_zeros", r"\boxed{42.0}", "42"), ("text_wrapper", r"\boxed{Saturday}", r"\text{Saturday}"),
    ],
    "geo3k": [  # mathruler returns the text "None" for a response without a box
        ("placeholder_gold", "I do not know.", "None"),
    ],
    "prime_math": [  # it runs code of the response (issue 5331), and has a tolerance
        ("runs_code", None, None), ("hundredfold", r"\boxed{0.50}", "50"),
        ("near_number", r"\boxed{2004.1002}", "2004"), ("hangs", None, None),
    ],
}
# fmt: on


@pytest.mark.parametrize("name", SCORERS)
def test_an_audit_finds_the_faults_of_a_scorer_of_verl(name):
    if name == "geo3k":
        pytest.importorskip("mathruler")
    form, golds = SCORERS[name]
    rows = [raw_row(f"What is it? {form}", gold) for gold in golds]
    report = audit(f"{WRAPPERS}:{name}", data=rows, seconds=2.0)
    failures = {
        (result.attack, pair.response if has_response else None, pair.gold if has_gold else None)
        for result in report.failed
        for pair in result.failures
        for has_response, has_gold in ((True, True), (False, True), (False, False))
    }
    assert {*FAULTS[name]} - failures == set()


def raw_row(question, gold, source="x"):
    prompt = [{"role": "user", "content": question}]
    reward = {"ground_truth": gold}
    return {"data_source": source, "prompt": prompt, "reward_model": reward, "extra_info": {}}


def test_verl_s_default_reward_runs_the_answers_of_the_sources_that_we_name_and_of_no_other():
    """CVE-2026-6878, in both releases; our scorer of the same rows runs nothing."""
    from verl.utils.reward_score import default_compute_score

    with tempfile.TemporaryDirectory(prefix=f"verl{os.getpid()}x", dir="/tmp") as name:
        marker = Path(name.replace("_", "")).with_suffix(".ran")  # verl cuts text at an underscore
        response = rf"\boxed{{open('{marker}','w') or 1\pi}}"
        numina, _ = VERL_EVALUATES.values()
        for source in ("openai/gsm8k", "lighteval/MATH", "math_dapo", *numina):
            with suppress(Exception):
                default_compute_score(source, response, "50")
            assert marker.exists() == (source in numina), source
            marker.unlink(missing_ok=True)
            compute_score(source, response, "50")
            assert not marker.exists()


def test_an_audit_of_verl_says_which_answers_verl_runs_and_finds_it():
    row = raw_row(r"What is it? Use \boxed{}.", "50", "numina_olympiads")
    lines = []
    report = audit("verl", data=[row], seconds=2.0, announce=lines.append)
    assert "CVE-2026-6878" in lines[0]
    assert report.scorer == "verl"
    assert "runs_code" in {result.attack for result in report.failed}


def test_an_audit_of_verl_on_programs_ends_and_finds_which_wrong_ones_are_paid():
    """benchmarks/README.md has the table of all attacks."""
    rows = [raw_row(row.prompt, row.gold, "taco") for row in packaged_problems("taco")]
    for raw, row in zip(rows, packaged_problems("taco"), strict=True):
        raw["extra_info"] = dict(row.extra_info)
    report = audit("verl", data=rows, seconds=15.0)
    failed = {result.attack for result in report.failed}
    assert {"first_tests_only", "reads_expected_output", "equal_to_everything"} <= failed
    assert {"replaces_comparer", "reads_standard_input_otherwise", "hangs", "exits"} <= failed
    assert not {"wrong_program", "ends_early", "part_of_output", "gold_in_its_form"} & failed
    assert {"never_ends", "forged_message"} <= {*report.not_run}
