"""A problem in other words with the same numbers is found; a variant with other numbers is not."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks.overlap import (
    MIN_WORDS,
    EvalItem,
    differing_words,
    find_overlaps,
    index_items,
)

ITEMS = [
    (
        "A gardener plants $48$ tulips in rows so that every row has the same number of tulips. When "
        "she adds $15$ daffodils to each row, the garden has $228$ flowers. Find the number of rows."
    ),
    (
        "Let $PQR$ be a triangle with $PQ = 17$, $QR = 25$ and $PR = 26$. The altitude from $Q$ meets "
        "the side $PR$ at the point $S$. Find the area of the triangle $PQS$."
    ),
    (
        "Two friends share a taxi that costs $37$ dollars. The first one leaves after $9$ kilometers, "
        "and the second one travels $14$ kilometers further. How much does the first friend pay?"
    ),
    (
        "The polynomial $x^3 - 41x^2 + kx - 1729$ has three positive integer roots. Determine the "
        "largest possible value of $k$ for which the roots are all different."
    ),
    "一个水池有两个进水管. 单开甲管需要 $18$ 小时注满. 单开乙管需要 $27$ 小时注满. 求同时打开的小时数.",
]

SYNONYMS = {
    "find": "determine", "determine": "find", "let": "suppose", "number": "count", "value": "size",
    "largest": "greatest", "greatest": "largest", "each": "every", "every": "each",
    "how many": "find how many", "what is": "find", "compute": "calculate", "the same": "an equal",
    "such that": "so that", "has": "contains", "when": "if", "first": "former", "is": "equals",
}  # fmt: skip


def synonyms(text, rng):
    """Replace most of the words that have a synonym."""
    pattern = rf"(?i)\b(?:{'|'.join(SYNONYMS)})\b"
    return re.sub(pattern, lambda m: SYNONYMS[m[0].lower()] if rng.random() < 0.7 else m[0], text)


def reorder(text, rng):
    """Put the first sentence at the end."""
    parts = re.split(r"(?<=[.?。]) ?", text.strip())
    return " ".join([*parts[1:], parts[0]]).strip()


def rename(text, rng):
    """Rename the two most frequent single letters in formulas."""
    letters = sorted(set(re.findall(r"(?<![A-Za-z\\])[b-hj-z](?![A-Za-z])", text)))[:2]
    for letter, other in zip(letters, "uw", strict=False):
        text = re.sub(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", other, text)
    return text


def add_sentence(text, rng):
    return f"{text} Give the answer as a single value and explain the reasoning behind it."


REWORDINGS = (synonyms, reorder, rename, add_sentence)


def reworded(text, rng):
    """Apply three of the rewordings."""
    for change in rng.sample(REWORDINGS, 3):
        text = change(text, rng)
    return text


def variant(text, rng):
    """The same template with other numbers; exponents and indexes stay."""
    return re.sub(r"(?<![\d^_{])\d+(?![\d}])", lambda m: str(int(m[0]) + rng.randint(3, 40)), text)


def rules(rows, items, **options):
    index = index_items(EvalItem("eval", str(i), text) for i, text in enumerate(items))
    return [(o.row, int(o.item), o.rule) for o in find_overlaps(rows, index, **options)]


def test_nine_of_ten_problems_in_other_words_are_found():
    found = 0
    for seed in range(20):
        rows = [reworded(text, random.Random(seed)) for text in ITEMS]
        found += len({row for row, _, _ in rules(rows, ITEMS)})
    assert found >= 0.9 * 20 * len(ITEMS)


def test_other_numbers_make_a_variant_which_is_a_near_miss():
    row = variant(ITEMS[1], random.Random(0))
    assert rules([row], ITEMS) == []
    assert rules([row], ITEMS, near_misses=True) == [(0, 1, "near_miss")]


def test_small_numbers_and_one_are_no_evidence():
    item = ITEMS[0].replace("48", "2").replace("15", "1").replace("228", "3")
    row = item.replace("she adds", "he puts").replace("garden has", "park got").replace("so", "and")
    assert rules([row], [item], threshold=1.0) == []


def test_numbers_may_be_words_and_fractions_may_be_short():
    item = (
        "A tank of $30$ liters is filled by two pipes. The first pipe fills $\\frac{1}{4}$ of the "
        "tank in 7 minutes, and the second pipe fills the rest in 19 minutes. How much does the "
        "second pipe fill per minute?"
    )
    row = (
        "Two pipes fill a tank of 30 liters. The former fills $\\frac14$ of this tank in seven "
        "minutes, and the second one fills its rest in 19 minutes. How much does that second pipe "
        "fill a minute?"
    )
    assert rules([row], [item]) == [(0, 0, "reworded")]


def test_a_prompt_s_template_does_not_hide_a_rewording():
    row = reworded(ITEMS[1], random.Random(3)).replace("altitude", "height")
    end = "Write the result in a box on the very last line of the response, and nothing after it."
    prompt = f"Solve this mathematical problem carefully and show your work.\n\n{row}\n\n{end}"
    assert [pair[:2] for pair in rules([prompt], ITEMS)] == [(0, 1)]


def test_a_short_problem_is_not_looked_up():
    item = "Find the sum of the smallest and largest prime factors of 10101."
    assert len(item.split()) < MIN_WORDS
    assert rules(["Find the sum of the distinct prime factors of 10101."], [item]) == []


def test_the_figure_s_numbers_do_not_count():
    figure = "[asy]\ndraw((0,0)--(88,99)--(123,77));\n[/asy]"
    row = reworded(ITEMS[1], random.Random(3)).replace("altitude", "height")
    assert {pair[1] for pair in rules([f"{row}\n{figure}"], ITEMS)} == {1}


def test_a_person_sees_the_words_that_differ():
    words = differing_words("Find all of the 12 roots.", "Find the 13 roots?")
    assert words == (["all", "of", "12"], ["13"])


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_texts_can_be_compared(item, row):
    rules([row, item + row], [item, item + item, "w " * MIN_WORDS], near_misses=True)


@pytest.mark.parametrize("piece", ["[asy]", "\\frac", "1,", "\\frac 1", "7 ", "a b c\n", "9" * 50])
def test_hostile_rows_take_linear_time(piece):
    assert not rules([piece * 20_000], ITEMS)
    rules([piece * 20_000], [piece * 200], near_misses=True)
