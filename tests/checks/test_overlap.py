"""`find_overlaps` reports the evaluation items in a row, but not common phrases."""

import json
import unicodedata

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks import overlap as module
from rewardkit.checks.overlap import EvalItem, find_overlaps, index_items, split_words
from tests.tables import every

PROBLEM = (
    "A train leaves the station at noon and travels east at $60$ miles per hour. A second train "
    "leaves one hour later at $80$ miles per hour. After how many hours do the trains meet?"
)
ENDING = "where $m$ and $n$ are relatively prime positive integers. Find $m+n$."

WORDS = st.sampled_from([f"{a}{b}" for a in "bcdfghjk" for b in "aeiou"])
TEXTS = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)


def items(*texts, source="eval"):
    return [EvalItem(source, str(i), text) for i, text in enumerate(texts)]


def overlapping(rows, *texts, threshold=0.5):
    """(row, item) of all overlaps."""
    overlaps = find_overlaps(rows, index_items(items(*texts)), threshold)
    return [(o.row, o.item) for o in overlaps]


@given(TEXTS, st.lists(TEXTS, max_size=5), TEXTS, TEXTS)
def test_an_item_on_separate_lines_of_a_row_is_an_overlap(item, others, before, after):
    assert (0, "0") in overlapping([f"{before}\n{item}\n{after}"], item, *others, threshold=1.0)


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, max_size=5), st.randoms())
def test_the_order_of_rows_and_items_does_not_change_the_overlaps(rows, texts, random):
    evals = items(*texts)
    before = {(rows[o.row], o.item, o.coverage) for o in find_overlaps(rows, index_items(evals))}
    assert all(0.5 <= coverage <= 1 for *_, coverage in before)
    random.shuffle(rows)
    random.shuffle(evals)
    after = {(rows[o.row], o.item, o.coverage) for o in find_overlaps(rows, index_items(evals))}
    assert before == after


LONG = [f"w{i // 26}{chr(97 + i % 26)}x" for i in range(40)]
SIN = r"Compute $\sin 0$"
#: Items with one ending, the last of which is short.
EVALS = [f"{PROBLEM.replace('train', f'thing{letter}')} {ENDING}" for letter in "abc"]
EVALS.append(f"The chance is $m/n$, {ENDING}")
CODE = "[asy]\nsize(150); pair A, B, C; A=(0,0); B=(3,0); draw(A--B--C--cycle); dot(A);\n[/asy]"


@every(
    ("row", "evals", "threshold", "expected"),
    [
        (" ".join(LONG[:30]), [" ".join(LONG)], 0.5, ["0"]),
        (" ".join(LONG[:18]), [" ".join(LONG)], 0.5, []),
        # a short item must be on lines of its own, in any markup
        ("In the triangle, AB = 5 and BC = 7. Find x.", ["Find x."], 0.01, []),
        ("Find the gcd of 12 and 24.", ["Find the gcd of 12 and 18."], 0.01, []),
        (r"compute \(\sin(0)\)", [SIN], 0.5, ["0"]),
        ("Solve it.\n\nCompute\n\\[\\sin 0\\]\n\nPut it in a box.", [SIN], 0.5, ["0"]),
        # an ending of many items does not count; a set that repeats its items is not boilerplate
        (f"Some other question is $p/q$, {ENDING}", EVALS, 0.3, []),
        (PROBLEM, [*[PROBLEM] * 32, *map(str, range(20))], 0.5, [str(i) for i in range(32)]),
        # the code of a figure does not make two problems one
        (f"How long is the third side of this figure?\n{CODE}", [f"{PROBLEM}\n{CODE}"], 0.5, []),
        (PROBLEM, [f"{PROBLEM}\n{CODE}"], 0.5, ["0"]),
    ],
)
def test_a_row_contains_the_items_whose_own_words_it_has(row, evals, threshold, expected):
    assert [item for _, item in overlapping([row], *evals, threshold=threshold)] == expected


def test_boilerplate_is_counted_per_set():
    """The template of a small set is boilerplate, even if other sets have many items."""
    small = items(*(f"Do solve this fine little problem for me now: {w}" for w in "abcdefghij"))
    large = items(*(f"{w} {PROBLEM}" for w in "ab"), *map(str, range(500)), source="large")
    row = "Do solve this fine little problem for me now: something else"
    assert list(find_overlaps([row], index_items(small + large), 0.1)) == []


def column(file, name):
    return pq.read_table(file, columns=[name])[name].to_pylist()


@pytest.fixture(scope="module")
def aime(shared):
    [file] = (shared / "data/aime_2024/HuggingFaceH4/data").glob("*.parquet")
    lines = (shared / "data/aime_2025/math-ai/test.jsonl").read_text(encoding="utf-8").splitlines()
    y25 = [json.loads(line)["problem"] for line in lines]
    return index_items(items(*column(file, "problem"), source="24") + items(*y25, source="25"))


def test_the_aime_problems_in_a_public_training_set_are_overlaps(shared, aime):
    """Rows 24 to 60 have them, 29 as copies or parts; none of the other 1,991 rows is reported."""
    file = shared / "data/orz/orz_fork_contaminated_2028.json"
    rows = [row[0]["value"] for row in json.loads(file.read_text(encoding="utf-8"))]
    overlaps = list(find_overlaps(rows, aime))
    assert sorted({o.row for o in overlaps}) == [*range(24, 54), *range(55, 61)]
    assert [o.source for o in overlaps if o.rule in ("copy", "part")] == ["24"] * 23 + ["25"] * 6
    assert [o.source for o in overlaps if o.rule == "reworded"] == ["24"] * 7
    assert len({(o.source, o.item) for o in overlaps}) == 36


def test_real_dapo_contains_no_problem_of_aime_and_a_quarter_of_math(shared, aime):
    """Another implementation, which counts the code of figures, has 1,339 of the 5,000."""
    [file] = (shared / "data/dapo-math-17k/data").glob("*.parquet")
    rows = [prompt[0]["content"] for prompt in column(file, "prompt")]
    assert not list(find_overlaps(rows, aime))
    [file] = (shared / "data/math/data").glob("test*.parquet")
    index = index_items(items(*column(file, "problem")))
    assert 1300 < len({o.item for o in find_overlaps(rows, index)}) < 1400


# `split_words` removes markup and preserves what distinguishes two problems


@every(
    ("text", "words"),
    [
        (r"$\left(x+1\right)^2$", "x + 1 ^ 2"),
        (r"$x\leq 3$, $y\geq 4$, $z\neq 5$", "x le 3 y ge 4 z ne 5"),
        ("x ≤ 3; y ≥ 4; z ≠ 5", "x le 3 y ge 4 z ne 5"),
        (r"90^\circ, 90^{\circ}, 90°", "90 circ 90 circ 90 circ"),
        ("x−1, x-1, x_2, x^2", "x - 1 x - 1 x 2 x ^ 2"),
        ("cafe\u0301", "café"),
        (r"$\frac12$ of 1,000 or 1\,000", "frac 1 2 of 1000 or 1000"),
        ("9! |x| 1/2 50% x<1", "9 ! | x | 1 / 2 50 % x < 1"),
        ("求AB的长度。カ", "求 ab 的 长 度 カ"),
        (r"\left( left \leftarrow", "left leftarrow"),
    ],
)
def test_markup_does_not_change_the_words_and_every_operator_is_one(text, words):
    assert split_words(text) == words.split()


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_words_without_spaces(text):
    """Also text with lone surrogates, which JSON can contain."""
    assert all(word and not any(c.isspace() for c in word) for word in split_words(text))


@given(st.text(), st.text())
def test_the_words_of_a_text_are_the_words_of_its_lines(one, other):
    """`find_overlaps` reads a row line by line and relies on it."""
    assert split_words(f"{one}\n{other}") == split_words(one) + split_words(other)


def test_a_long_sequence_of_marks_is_cut_before_normalization(monkeypatch):
    """Normalization sorts them, which takes the square of their number: minutes for 1 MB."""
    seen = []
    normalize = unicodedata.normalize
    stand_in = type("unicodedata", (), {"combining": unicodedata.combining})
    stand_in.normalize = lambda form, text: seen.append(text) or normalize(form, text)
    monkeypatch.setattr(module, "unicodedata", stand_in)
    assert split_words("a" + "\u0301\u0316" * 500_000 + " b")[-1] == "b"
    assert len(seen[0]) < 50


@pytest.mark.parametrize("unit", ["\\", "\\left", "-", "a-", "[asy]", "\\text{", "求", "^{"])
def test_a_megabyte_of_any_text_is_split(unit):
    assert len(split_words(unit * (10**6 // len(unit)))) <= 20 * 10**6
