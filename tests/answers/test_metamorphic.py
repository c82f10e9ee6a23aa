"""The scorer `math` accepts every gold in other spellings and rejects answers that only look like it.

The transformations are those of `benchmarks/metamorphic.py`; its table says which of them fail.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.tables import every

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def metamorphic():
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("metamorphic")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def own_calls(metamorphic):
    golds = metamorphic.load(metamorphic.OWN_GOLDS)
    return [call for gold in golds for call in metamorphic.calls_of(gold)]


@pytest.fixture(scope="module")
def real_calls(metamorphic, shared):
    golds = metamorphic.load(shared / "cases" / "golds.jsonl")
    return [call for gold in golds for call in metamorphic.calls_of(gold)]


def misses(metamorphic, calls):
    """Return the properties below their floor; `metamorphic.py --misses` lists their misses."""
    verdicts = [metamorphic.holds(call) for call in calls]
    return metamorphic.below_floor(calls, verdicts)


@every("name", ["identity", "restyling", "perturbation", "copy"])
def test_golds_of_every_type_have_the_property(metamorphic, own_calls, name):
    calls = [call for call in own_calls if call.kind == name]
    assert len(calls) > 90
    assert not misses(metamorphic, calls)


@every("half", ["build", "held"])
def test_thousands_of_real_golds_have_the_properties_in_both_halves(metamorphic, real_calls, half):
    calls = [call for call in real_calls if call.gold.half == half]
    assert len(calls) > 30_000
    assert not misses(metamorphic, calls)


def test_every_transformation_applies_to_a_gold_of_our_own(metamorphic, own_calls):
    perturb, restyle = (importlib.import_module(name) for name in ("perturb", "restyle"))
    applied = {(call.kind, call.transformation) for call in own_calls}
    assert not [name for name in restyle.STYLES if ("restyling", name) not in applied]
    assert not [
        name for name in perturb.SURE | perturb.READ if ("perturbation", name) not in applied
    ]


@every(
    "one, two, differ",
    [
        (r"\frac{1}{2}", "0.5", False), (r"\frac{1}{2}", "0.51", True),
        (r"\sqrt{8}", r"2\sqrt{2}", False), ("(x-1)(x+1)", "x^2-1", False),
        ("(x-1)(x+1)", "x^2+1", True), ("2x+2y=2", "x+y=1", False), ("2x+2y=2", "x+y=2", True),
        (r"\{1,2\}", r"\{2,1\}", False), (r"\{1,2\}", r"\{2,3\}", True), ("(1,2)", "(2,1)", True),
        ("[0,1)", "[0,1]", True), (r"(0,1]\cup(1,2)", r"(0,1)\cup(1,2)", False),
        ("x > 5", "5 < x", False), ("x > 5", r"x \ge 5", True),
        (r"\pi k, k \in \mathbb{Z}", r"\pi - \pi n, n \in \mathbb{Z}", False),
        (r"\pi k, k \in \mathbb{Z}", r"2\pi k, k \in \mathbb{Z}", True),
        (r"(x-1)^3 = 0", "f(x)", False), ("1/2x", "x", False), ("Monday", "Friday", False),
    ],
)  # fmt: skip
def test_the_reader_returns_a_certain_result_or_none(metamorphic, one, two, differ):
    readings = importlib.import_module("readings")
    assert readings.surely_differ(readings.read(one), readings.read(two)) is differ


@every(
    "question, gold, copied",
    [
        ("Compute $2^{10} - 4$.", "1020", ["2^{10} - 4"]),
        ("Expand $(x+1)^2$.", "x^2+2x+1", ["(x+1)^2"]), ("Expand $(x+1)^2$.", "(x+1)^2", []),
        (r"Solve $x^2 = 9$ for $x > 0$.", "3", ["x^2 = 9"]),
        (r"Where is $f$ defined, if $0 \le x < 1$?", "[0,1)", []),
        (r"Is it $\frac{1}{2}$ or $\frac{1}{3}$?", r"\frac{1}{2}", []),
        ("(A) $2^2$ (B) $3^2$", "B", []),
    ],
)  # fmt: skip
def test_a_formula_is_a_copy_only_if_it_cannot_be_the_answer(metamorphic, question, gold, copied):
    copies = importlib.import_module("copies")
    assert [text for _, text in copies.copies(question, gold)] == copied
