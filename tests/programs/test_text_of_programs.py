"""Text of a model is read in linear time, and a program is found where models put it."""

import json
from time import process_time

import pytest

from rewardkit.programs.compare import same_text
from rewardkit.programs.extract import program_of
from rewardkit.programs.grade import complete
from rewardkit.programs.problem import read_problem


@pytest.mark.parametrize(
    "response",
    [
        "Step 1: ```python\nx = 1\n```\nStep 2: ```python\nprint(2)\n```",
        "```python\r\nprint(2)\r\n```",
        "~~~py\nprint(2)\n~~~",
        "It ends with ```python as asked.\n\n```python title=x\nprint(2)\n```\nDone.",
        "```\nnot python\n```\n````python\nprint(2)",
    ],
)
def test_a_fence_may_follow_text_on_its_line_if_it_only_names_a_language(response):
    assert program_of(response).strip() == "print(2)"


@pytest.mark.parametrize("line", ["~" * 100_000 + "`", "~~~" + " " * 100_000 + "`", "```" * 50_000])
def test_a_line_of_marks_is_read_in_linear_time(line):
    start = process_time()
    program_of(line)
    assert process_time() - start < 1


def test_a_word_of_digits_is_compared_in_linear_time():
    start = process_time()
    assert not same_text(b"1" * 100_000 + b"x", "1.5" + " " * 100_000)
    assert process_time() - start < 1


def test_a_prompt_goes_before_a_program_that_does_not_define_the_function_itself():
    tests = {"test": "assert add(1, 2) == 3", "prompt": "def add(a, b):", "entry_point": "add"}
    problem = read_problem(json.dumps(tests))
    for program in ("    return a + b", "def add_all(a): ...\n", "x = 'def add'"):
        assert complete(problem, program).startswith("def add(a, b):\n")
    for program in (
        "def add(*a): ...",
        "async  def add (a): ...",
        "class S:\n\tdef add(self): ...",
    ):
        assert complete(problem, program) == program


def test_a_null_input_is_an_empty_one():
    assert read_problem('{"inputs": [null], "outputs": ["1"]}').tests == (("", "1"),)
