"""Hostile answers: every text gets a verdict in time, and no text is run as code."""

import builtins
import json
import time

import pytest

from rewardkit.answers.equal import compare
from rewardkit.scorers import gsm8k, math, math_dapo, mcq
from rewardkit.scorers.base import Score
from tests.tables import every

#: CPU seconds within which any input must be judged: generous, to hold on a busy machine.
BOUND = 1.0

#: Every scorer that reads answers, in every mode: name -> (scorer, options).
SCORERS = {
    "math": (math.score, {}), "mcq": (mcq.score, {}),
    "mcq-final-letter": (mcq.score, {"final_letter": True}),
    "mcq-dianjin": (mcq.score, {"mode": "dianjin"}),
    "mcq-letters": (mcq.score, {"mode": "letters"}), "gsm8k": (gsm8k.score, {}),
    "gsm8k-flexible": (gsm8k.score, {"method": "flexible"}),
    "gsm8k-robust": (gsm8k.score, {"method": "robust"}), "math_dapo": (math_dapo.score, {}),
    "math_dapo-strict-box": (math_dapo.score, {"strict_box": True}),
    "math_dapo-robust": (math_dapo.score, {"mode": "robust"}),
}  # fmt: skip

#: Cases on whose label and our policy disagree: id -> why.
CONFLICTS = {
    "exp:collision:242": "f(x)=0 is the label f(x) with the value 0, as in every other row",
    "adv:code3": "[0]*10**10 is read as mathematics, a product that is 0, and 0 is the gold",
}

PIECES = [
    "\\boxed{", "\\boxed", "\\boxed ", "\\boxed{1} ", "\\boxed{1} and ", "{", "}", "\\", "$", "$1", "$$",
    "\\(", "\\[", "\\text{", "#### ", "####", "#### 1 ", "#### 1\n", "Answer: ", "answer is ", "Answer: $",
    "answer", "The answer is (A) ", "答案：", "故选", "<answer>", "</answer>", "<answer>A</answer>", "<think>",
    "</think>", "1", "1,", "1 ", "1.", "-", "(", "A", "A ", "(A) ", "a, ", " ", "\n", "*", "_", "`", "<sup>",
    "\\frac", "\\frac1", "\\, ", "~", "1 000 ", "x ", "a word ", "，", "é", "Answer: x ", "answer ** ", "Answer: A ", "A,",
    "A, ", "A and ", "A. b ", "(((", "AAAAAAAAAA ", "\\boxed{A} or ", "不选A,", "、", "and", "\n选", "选", "是", "A项",
    "A is correct ", "B is the best ", "must be ", "if the ", "***A", "not A, ", "和", "ﷺ",
]  # fmt: skip


def cases(shared, name):
    lines = (shared / "cases" / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def cpu(function, *arguments, **options):
    """Return (result, CPU seconds)."""
    started = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - started


def is_judged_in_time(name, response, gold):
    scorer, options = SCORERS[name]
    result, seconds = cpu(scorer, response, gold, **options)
    assert isinstance(result, Score)
    assert seconds < BOUND, (name, response[:80], gold[:80])


# --- collected inputs


@pytest.mark.parametrize("name", SCORERS)
def test_every_adversarial_response_and_gold_is_judged_in_time(shared, name):
    for case in cases(shared, "adversarial_inputs.jsonl"):
        is_judged_in_time(name, case["solution_str"], case["ground_truth"])
        is_judged_in_time(name, case["solution_str"], case["solution_str"])
        for gold in {case["solution_str"], case["ground_truth"], case["pred"] or ""}:
            for response in (r"\boxed{5}", "Answer: 5", "#### 5", r"\boxed{x+1}"):
                is_judged_in_time(name, response, gold)


def test_every_answer_at_the_limits_is_compared_in_time():
    for text in HAND_MADE:
        for other in ("5", "x", "x+5", r"50\%", "(0,1)", r"\{1,2\}", "y=x", text + " "):
            for pair in ((text, other), (other, text)):
                verdict, seconds = cpu(compare, *pair)
                assert verdict.outcome in ("equal", "different", "ambiguous", "unreadable")
                assert seconds < BOUND, (text[:80], other[:80])
                for response in (rf"\boxed{{{pair[0]}}}", pair[0]):
                    is_judged_in_time("math", response, pair[1])


def test_wrong_adversarial_answers_are_wrong(shared):
    for case in cases(shared, "adversarial_inputs.jsonl"):
        if case["label"] is False and case["id"] not in CONFLICTS:
            result = math.score(case["solution_str"], case["ground_truth"])
            assert not result.correct, case["id"]


def test_exploits_are_judged_as_labelled_except_for_the_listed_conflicts(shared):
    missed = {
        case["id"]
        for case in cases(shared, "exploits.jsonl")
        if case["label"] is not None
        and math.score(case["solution_str"], case["ground_truth"]).correct != case["label"]
    }
    assert missed == {name for name in CONFLICTS if name.startswith("exp:")}


# --- inputs at the limits: as long, as deep and as wide as is parsed

HAND_MADE = [
    "x" + "^x" * 290, "2" + "^2" * 290, "2^{" * 39 + "2" + "}" * 39, "2" + "^-" * 290 + "1",
    "+" * 590 + "1", "-" * 300 + "1", "2*" + "-" * 300 + "x", "1" + "/2" * 290, "x" + "/x" * 290,
    "5" + "=x" * 290, "5" + "=5" * 290, "1" + "<x" * 290, "(0,1)" + r"\cup(0,1)" * 90,
    "[0,1]" + r"\setminus\{0\}" * 80, r"\pm 1" * 290, ",".join([r"\pm x"] * 100),
    r"\{" + ",".join(f"x+{n}" for n in range(59)) + r"\}", ",".join(["x+y"] * 140), "x" + "_x" * 290,
    r"\sqrt{" * 39 + "2" + "}" * 39, r"\sin" * 290 + " x", r"\sum" * 290 + "x",
    r"10^{300}" * 70, r"(x+y)^{1000}", r"(x^{1000})^{1000}", r"\binom{1000}{500}", "170!+1", "171!+1",
    "9" * 256, "0." + "3" * 250, "1," * 290 + "1", r"\begin{pmatrix}" + "&".join("x" * 250) + r"\end{pmatrix}",
    r"\lfloor 10^{15} \rfloor", r"\gcd(10^{14}, 10^{13})", "f(" * 39 + "x" + ")" * 39, "|" * 30 + "x" + "|" * 30,
    # these once hung or raised
    r"\sqrt" * 300 + "2", r"\frac1" * 290 + "2", r"\log_" * 290 + "2 x", "5" + "!" * 590 + "+1",
    "5" + "%" * 590 + "+1", "-" * 600 + "1", "+" * 600 + "1",
    r"\begin{pmatrix}x&y\\y&x\end{pmatrix}" * 16,
    r"\begin{pmatrix}\end{pmatrix}+\begin{pmatrix}\end{pmatrix}", "1e9999万", r"5^\circ 1e9999'",
    "F_\ud800", "111," * 499 + "1", "1" + " " * 4000 + "x", r"\circ^" + " " * 4000 + "x",
    "ab " * 1000 + "\\", "\\boxed" * 333, "\\" * 40_000, "x" + "\\" * 40_000,
]  # fmt: skip


# --- length


@every("name", ["math", "mcq-final-letter", "gsm8k-robust", "math_dapo"])
@every("piece", PIECES)
def test_cost_is_linear_in_the_response(name, piece):
    """Twenty times the text takes at most about twenty times as long, on the worst inputs."""
    scorer, options = SCORERS[name]

    def cost(chars):
        text = piece * (chars // len(piece))
        return min(cpu(scorer, text, "5", **options)[1] for _ in range(2))

    assert cost(1_000_000) < 60 * cost(50_000) + 0.01


@every("name", ["math", "math_dapo"])
@every("piece", PIECES)
def test_cost_is_linear_in_the_gold(name, piece):
    scorer, options = SCORERS[name]

    def cost(chars):
        text = piece * (chars // len(piece))
        return min(
            cpu(scorer, r"Answer: \boxed{5} #### 5", text + str(n), **options)[1] for n in range(2)
        )

    assert cost(1_000_000) < 60 * cost(50_000) + 0.01


# --- no text is run

CODE = [
    '__import__("os").system("true")', "exec('x=1')", "eval('1')", "lambda: 6", "[0]*10**10", "9**9**9**9",
    "factorial(10**7)", "open('/etc/passwd')", "{}.__class__.__mro__", r"\input{/etc/passwd}", "%s%n", "{0}",
]  # fmt: skip


@pytest.mark.parametrize("text", CODE)
def test_no_text_is_evaluated(monkeypatch, text):
    """The built-ins that run code are not called, and code does not equal a number."""

    def refuse(*arguments, **options):
        raise AssertionError("text from a response was evaluated")

    math.score(r"\boxed{\sqrt{2}}", "1.41421356")  # what is imported on first use is imported now
    responses = [rf"\boxed{{{text}}}", f"Answer: {text}", f"#### {text}", text]
    with monkeypatch.context() as patch:
        for name in ("eval", "exec", "compile"):
            patch.setattr(builtins, name, refuse)
        results = [
            scorer(response, "5", **options)
            for scorer, options in SCORERS.values()
            for response in responses
        ]
        compare(text, "x+1")
        compare("x+1", text)
    assert not any(result.correct for result in results)
