"""math_dapo compared with verl's own math_dapo: in all its options."""

import json
import random

import pytest

from rewardkit.scorers import math_dapo
from rewardkit.scorers.base import Status
from rewardkit.scorers.gold import accept_gold

# fmt: off
PIECES = (
    *("frac", r"\frac", r"\frac12", r"\dfrac{1}{2}", "sqrt", r"\sqrt", r"\sqrt2", r"\sqrt{3}"),
    *(r"\text{", r"\text{and}", r",\text{and}", r"\text{m}", r"\text{ s}", r"\text{}^2", "mbox{"),
    *(r"\textbf{", r"\overline{", r"\boxed{", r"\boxed{\boxed{", r"\fbox{", "{", "}", "}}", r"\{"),
    *("$", "$$", r"\$", ".$", "$1$", "an ", "a ", "ban ", " ", "  ", "\t", "\xa0", "\u3000"),
    *("Answer:", "answer :", "ANSWER", "An\u017fwer:", "Answer", ":", "：", "=", "==", "\n", "\r\n"),
    *("\x1c", "\u2028", "\x85", "{,}", ",", r",\!", r"\;", r"\ ", "^", r"^\circ", r"^{\circ}"),
    *(r"\mathrm{th}", r"\ldots", r"\dots", '"', ".", "-", "square", "ways", "dollars", "units"),
    *("meters", "m", "s", "km", "sue", "is", "degrees", "childrentickets", "children tickets"),
    *("0", "1", "2", "12", "1,000", "3.5", "1/2", "x", "(", ")", "[INVALID]", "INVALID", "\\"),
    *("²", "１２", "𝟙", "٣", "é", "İ", "答案", "😀", "\ud800", "\udfff", "\x00", "unit s", "poi nts"),
)
# fmt: on

# Golds of the shared attacks that cannot be scored; no real row has such a gold.
HAND_MADE = {"", " ", "[INVALID]", "nan", "None"}


@pytest.fixture(scope="module")
def verl_score():
    from verl.utils.reward_score import math_dapo as verl_math_dapo

    return verl_math_dapo.compute_score


@pytest.fixture
def differences(verl_score):
    """Return the pairs on which we and verl differ, and those that differ by a fixed false positive."""

    def compare(pairs, **options):
        strict = options.get("strict_box", False)
        differing, fixed = [], []
        for response, gold in pairs:
            expected = verl_score(response, gold, strict_box_verify=strict)
            ours = math_dapo.score(response, gold, **options)
            verdict = (expected["score"], bool(expected["acc"]), expected["pred"] or "")
            if verdict == (ours.score, ours.correct, ours.pred):
                continue
            hole = verdict == (1.0, True, ours.pred) and ours.status is Status.BAD_GROUND_TRUTH
            is_empty = math_dapo.normalize(gold) in ("", "[INVALID]") or not accept_gold(gold)
            hole = hole and is_empty
            (fixed if hole else differing).append((response, gold, verdict, ours))
        return differing, fixed

    return compare


@pytest.fixture(scope="module")
def real_pairs(shared):
    """Every (response, gold) of the shared cases, without golds that are too slow for verl."""
    cases = [
        json.loads(line)
        for file in sorted((shared / "cases").glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]
    pairs = [(c.get("solution_str"), c.get("ground_truth")) for c in cases]
    texts = [(r, g) for r, g in pairs if isinstance(r, str) and isinstance(g, str)]
    return [(r, g) for r, g in texts if len(g) < 20_000]


def random_text(rng, most):
    return "".join(rng.choices(PIECES, k=rng.randint(0, most)))


def generated_pairs(count):
    """Generate related responses and golds from pieces that matter, so that many are right."""
    rng = random.Random(20240917)
    for _ in range(count):
        gold = random_text(rng, 6)
        other = gold if rng.random() < 0.6 else random_text(rng, 6)
        decorated = random_text(rng, 1) + other + random_text(rng, 1)
        before, after = random_text(rng, 8), random_text(rng, 3)
        marked = rng.choice(
            (f"Answer: {decorated}", f"Answer:{other}", rf"\boxed{{{other}}}", decorated)
        )
        filler = "so " * rng.choice((0, 0, 0, 30, 95))
        yield before + marked + after + filler, gold


@pytest.mark.parametrize("options", [{}, {"strict_box": True}])
def test_no_verdict_differs_on_real_responses(differences, real_pairs, options):
    assert len(real_pairs) > 15_000
    differing, fixed = differences(real_pairs, **options)
    assert differing == []
    assert {gold for _, gold, *_ in fixed} <= HAND_MADE


def test_no_verdict_differs_on_real_answers_in_the_form_of_dapo(differences, real_pairs):
    """Golds stand after `Answer:` plain, in a formula or in a box, also those of another row."""
    golds = [gold for _, gold in real_pairs]
    forms = ("Answer: {}", "thus\nAnswer: ${}$", "Answer: \\boxed{{{}}}.", "so \\boxed{{{}}}")
    pairs = [
        (forms[i % 4].format(answer), gold)
        for i, gold in enumerate(golds)
        for answer in (gold, golds[i - 1])
    ]
    differing, fixed = differences(pairs)
    assert differing == []
    assert {gold for _, gold, *_ in fixed} <= HAND_MADE


def test_no_verdict_differs_on_50_000_generated_responses(differences, verl_score):
    pairs = list(generated_pairs(50_000))
    differing, fixed = differences(pairs)
    assert differing == []
    assert 0 < len(fixed) < len(pairs) / 10
    assert differences(pairs[:20_000], strict_box=True)[0] == []
    right = sum(math_dapo.score(response, gold).correct for response, gold in pairs)
    assert right > len(pairs) / 20  # else the test would show little


def test_the_normal_form_agrees_with_verl_on_texts_of_many_lines():
    from verl.utils.reward_score.math_dapo import normalize_final_answer

    rng = random.Random(7)
    texts = [random_text(rng, rng.choice((8, 60, 300))) for _ in range(10_000)]
    assert [t for t in texts if math_dapo.normalize(t) != normalize_final_answer(t)] == []
