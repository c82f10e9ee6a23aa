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
