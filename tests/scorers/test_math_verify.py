import json
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from rewardkit.errors import RewardkitError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import CallError
from rewardkit.scorers import _math_verify_target
from rewardkit.scorers.base import Status
from rewardkit.scorers.math_verify import MAX_CHARS, compute_score, respond, score

HANGS = [r"\boxed{9^{9^{9^{9}}}}", r"\boxed{\binom{10^{9}}{10^8}}"]


@pytest.fixture
def package():
    """Skip the test unless Math-Verify is installed."""
    pytest.importorskip("math_verify", reason="pip install 'rewardkit[math-verify]'")


def verdict_of_verl(response, gold):
    """Math-Verify, called as verl's `math_verify` reward calls it."""
    from math_verify.grader import verify
    from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig, parse

    golds = parse(rf"\boxed{{{gold}}}", (LatexExtractionConfig(),))
    preds = parse(response, (ExprExtractionConfig(), LatexExtractionConfig()))
    if not golds or not preds:
        return False
    return max(any(verify(g, p) for g in golds) for p in preds)


def real_cases(shared, count=200):
    """Return (response, gold) pairs: half with their own question's gold, half with another's."""
    lines = (shared / "cases" / "real_math_qwen25.jsonl").read_text(encoding="utf-8").split("\n")
    cases = [json.loads(line) for line in lines[:count] if line]
    golds = [case["ground_truth"] for case in cases]
    golds[::2] = [*golds[2::2], golds[0]]
    return [(case["solution_str"], gold) for case, gold in zip(cases, golds, strict=True)]


@pytest.mark.usefixtures("package")
def test_verdicts_are_math_verify_s_from_the_main_thread_and_from_others(shared):
    cases = real_cases(shared)
    expected = [verdict_of_verl(*case) for case in cases]
    assert 50 < sum(expected) < 150
    assert [score(*case).correct for case in cases] == expected
    with ThreadPoolExecutor(8) as pool:
        assert [s.correct for s in pool.map(score, *zip(*cases, strict=True))] == expected


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("response", "gold", "pred", "status"),
    [
        (r"So it is \boxed{0.75}.", r"\frac{3}{4}", "0.75", Status.CORRECT),
        (r"\boxed{0.6}", r"\frac{1}{2}", "0.6", Status.WRONG),
        (r"\boxed{?}", "?", "?", Status.CORRECT),
        ("no idea", "5", "", Status.NO_ANSWER),
        (r"\boxed{5}", "}", "", Status.BAD_GROUND_TRUTH),
        (r"\boxed{5}", "5" * (MAX_CHARS + 1), "", Status.BAD_GROUND_TRUTH),
        ("x" * MAX_CHARS + r" \boxed{5}", "5", "5", Status.CORRECT),
        (r"\boxed{5} " + "x" * MAX_CHARS, "5", "", Status.NO_ANSWER),
        ("\ud800 5", "5", "5", Status.CORRECT),
    ],
)
def test_each_outcome_of_the_helper_has_its_own_status(response, gold, pred, status):
    correct = status is Status.CORRECT
    assert score(response, gold) == (float(correct), correct, pred, status)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("hanging", HANGS)
def test_a_response_that_hangs_times_out_and_the_next_is_judged(hanging):
    score(respond("5"), "5")  # the start of a helper is not part of a deadline
    assert score(hanging, "5", seconds=0.5) == (0.0, False, "", Status.TIMEOUT)
    assert compute_score("x", hanging, "5", seconds=0.3)["timeout"] == 1.0
    assert score(respond("5"), "5").correct


@pytest.fixture
def no_process():
    """Start processes in this test, and let none of them stay for another."""
    _math_verify_target.isolated.cache_clear()
    yield
    _math_verify_target.isolated.cache_clear()


@pytest.mark.usefixtures("no_process")
def test_without_the_package_or_its_process_there_is_one_line_of_error(monkeypatch, tmp_path):
    (tmp_path / "math_verify.py").write_text("raise ModuleNotFoundError('No such module')")
    monkeypatch.syspath_prepend(tmp_path)  # a helper has the module path of its caller
    with pytest.raises(UsageError, match=r"pip install 'rewardkit\[math-verify\]'"):
        score(respond("5"), "5")
    assert compute_score("x", respond("5"), "5")["error"] == 1.0
    _math_verify_target.isolated.cache_clear()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RewardkitError, match="math_verify"):
        score(respond("5"), "5")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (ChildCrashError("needed more than 512 MiB"), Status.TOO_LONG),
        (CallError("RecursionError", "too deep", ""), Status.UNPARSED_ANSWER),
        (ChildTimeoutError("CPU time limit reached"), Status.TIMEOUT),
    ],
)
def test_a_response_that_crashes_the_helper_is_a_wrong_answer(monkeypatch, outcome, status):
    function = SimpleNamespace(call=lambda _: outcome)
    monkeypatch.setattr(_math_verify_target, "isolated", lambda _: function)
    assert score(respond("5"), "5") == (0.0, False, "", status)
