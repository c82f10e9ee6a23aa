"""Tests that are code: what they may ask of a program, and what counts as one of them."""

import json
import sys

import pytest

from rewardkit.programs import local
from rewardkit.programs.grade import Grading, grade_locally
from rewardkit.programs.problem import read_problem

NODE = (
    "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next\n"
)
STACK = (
    "class Stack:\n    def __init__(self): self.values = []\n"
    "    def push(self, x): self.values.append(x)\n    def pop(self): return self.values.pop()\n"
    "    def __len__(self): return len(self.values)\n"
)
CASES = {
    # the row, a right program and a wrong one
    "assertions": (
        {"assert_case": ["assert f(1) == (1, 2)", "assert math.isclose(f(2)[1], 2.5)"]},
        "def f(x): return (1, 2) if x == 1 else [2, 2.5]",
        "class math: isclose = staticmethod(lambda *_: True)\ndef f(x): return (1, 2)",
    ),
    "a name that is built in": (
        {"assert_case": ["assert sum(10, 15) == 6"]},
        "def sum(a, b): return 6",
        "def sum(a, b): return 5",
    ),
    "a call in calls of names that are built in": (
        {"assert_case": ["assert sorted(merge([2], [1])) == [1, 2]", "assert abs(gcd(4, 6)) == 2"]},
        "def merge(a, b): return a + b\ndef gcd(a, b): return -2",
        "sorted = abs = lambda _: [1, 2]\ndef merge(a, b): return [3]\ndef gcd(a, b): return 3",
    ),
    "check with a function that asserts": (
        {
            "test": "def same(a, b): assert a == b\ndef check(candidate):\n"
            "    for x, y in ((1, 2), (2, 3)):\n        same(candidate(x), y)",
            "entry_point": "f",
        },
        "def f(x): return x + 1",
        "def f(x): return 2",
    ),
    "check without assertions": (
        {"test": "def check(candidate):\n    values = [1]", "entry_point": "f"},
        None,
        "def f(x): return x",
    ),
    "functions of pytest": (
        {
            "test": "from solution import f\nimport pytest\n@pytest.mark.parametrize('x', [1])\n"
            "def test_one(): assert f(1) == 2\n"
            "def test_error():\n    with pytest.raises(ValueError): f(0)"
        },
        "def f(x):\n    if not x: raise ValueError\n    return 2",
        "def f(x): return 2",
    ),
    "a class of unittest": (
        {
            "test": "import unittest\nclass TestF(unittest.TestCase):\n"
            "    def setUp(self): self.x = 1\n"
            "    def test_f(self): self.assertEqual(f(self.x), 2)",
            "entry_point": "f",
        },
        "def f(x): return 2",
        "import unittest\nunittest.TestCase.assertEqual = print\ndef f(x): return 3",
    ),
    "an argument that is changed": (
        {"assert_case": ["x = [1, 2]\nf(x)\nassert x == [2, 1]"]},
        "def f(x): x.reverse()",
        "def f(x): x = [2, 1]",
    ),
    "objects of a class of the row": (
        {"prelude": NODE, "assert_case": ["assert f(Node(1, Node(2))).next.value == 3"]},
        "def f(node):\n    node.next.value += 1\n    return node",
        ("class Any:\n    def __eq__(self, _): return True\n"
        "def f(node):\n    node.next.value = Any()\n    return node"),
    ),
    "objects of a class of the program": (
        {"assert_case": ["s = Stack()\ns.push(1)\nassert s.pop() == 1 and len(s) == 0"]},
        STACK,
        STACK.replace("self.values.append(x)", "pass"),
    ),
    "a function of functions": (
        {"assert_case": ["assert f(g)(2) == 3"]},
        "def g(x): return x\ndef f(h): return lambda x: h(x) + 1",
        "def g(x): return x\ndef f(h): return h",
    ),
    "a program without the function": (
        {"test": "from solution import f\ndef test_f(): assert f(1) == 1"},
        "def f(x): return x",
        "def g(x): return x",
    ),
    "a method of Solution": (
        {"test": "def check(candidate):\n    assert candidate(x=1) == 1", "entry_point": "Solution().f"},
        "class Solution:\n    def f(self, x: List[int]): return x",
        "class Solution:\n    def f(self, x): return Counter([x])",
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    sandbox = local.Sandbox()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "local_sandbox", lambda **_: sandbox)
        yield
    sandbox.close()


def verdict(row, program):
    return grade_locally(read_problem(json.dumps(row)), program, Grading(seconds=5))


@pytest.mark.parametrize("name", CASES)
def test_a_right_program_passes_and_a_wrong_one_does_not(name):
    row, right, wrong = CASES[name]
    assert right is None or verdict(row, right).is_right, verdict(row, right).failure
    result = verdict(row, wrong)
    assert not result.is_right


@pytest.mark.parametrize(
    "test", ["import no_such_package\nassert f(1)", "assert f(", "1 / 0\nassert f(1)"]
)
def test_a_test_that_cannot_run_is_an_error_and_not_a_wrong_answer(test):
    row = {"prelude": "", "assert_case": [test]}
    if "1 / 0" in test:
        row = {"prelude": "1 / 0", "assert_case": ["assert f(1)"]}
    with pytest.raises(local.SandboxError, match="the tests of the row cannot run here"):
        verdict(row, "def f(x): return x")


def test_a_sandbox_without_a_working_bubblewrap_goes_without_it(tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sandbox = local.Sandbox()
    monkeypatch.setattr(local, "local_sandbox", lambda **_: sandbox)
    assert "bubblewrap" not in sandbox.level
    assert verdict({"inputs": ["1"], "outputs": ["1"]}, "print(1)").is_right
    sandbox.close()
