"""What a test that is code gets from the program is as in one process, where it can be."""

import json

import pytest

from rewardkit.scorers.code import grade

NODE = """class Node:
    def __init__(self, value, after=None):
        self.value, self.after = value, after
"""
#: A test that changes an object between two calls.
LATER = """first = Node(1)
second = Node(2, first)
assert not f(second)
first.after = second
assert f(second)
"""


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
        (
            "def f(node):\n    return node.after is not None and node.after.after is node",
            LATER,
        ),
        ("def f(node):\n    node.value += 1", "node = Node(1)\nf(node)\nassert node.value == 2"),
    ],
)
def test_generators_and_objects_of_the_row_are_those_of_the_test(program, test):
    truth = {"test": test, "entry_point": "f", "prelude": NODE}
    assert grade(program, json.dumps(truth))[0].correct
