"""What is wrong with the tests of a row: the programs that they pay, and the outputs that they cannot know.

The row's own solution has to pass; a program that does nothing, one that repeats what it is given and one
that always gives the first expected output must not.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from rewardkit.programs.compare import same_text, same_value
from rewardkit.programs.grade import Grade
from rewardkit.programs.problem import Problem

#: Characters of a prompt in which an output follows its input.
_NEAR = 300
#: Places of an input in a prompt that are looked at.
_PLACES = 20
#: Tests of a row that a prompt may show.
_SHOWN = 50

#: Words by which a text says that several outputs are right.
_SEVERAL = re.compile(
    r"(?i)\b(?:print|output|return|report|find|give|answers?|solutions?)\b"
    r"(?:(?!\bif\b|\bnot\b|n't\b)[^.\n]){0,60}?\b(?:in any order|any(?: one)? of (?:them|these)|"
    r"any (?:(?:one|valid|correct|suitable|possible|such) )?(?:answer|solution|output)|any(?= ?[.;)\n]))"
)
#: What a test does that does not ask for one output.
_FREE_TEST = re.compile(r"\b(?:sorted|set|Counter|any|all|in|isclose|approx)\b|assert(?:Count|In)")
_CALLED = re.compile(r"from solution import (\w+)|assert (?:not )?(\w+)\(")


def find_faults(
    problem: Problem, prompt: str, solution: str, grade: Callable[[str], Grade]
) -> Iterator[tuple[str, str]]:
    """Yield the rule that a row breaks, and how.

    Args:
        problem: the tests of the row.
        prompt: what the policy is asked.
        solution: the row's own program; "" if it has none.
        grade: grades a program against the tests.
    """
    if "\\r\\n" in repr(problem.tests):
        yield "line_ends", "an input or an output has \\r\\n, which a right program may not print"
    if (
        not problem.settings["checker"]
        and (match := _SEVERAL.search(prompt))
        and _is_exact(problem)
    ):
        yield "several_outputs", f"the prompt says {match[0]!r}, but only one output is right"
    if len(tests := problem.tests) <= _SHOWN and all(
        _is_shown(problem, *test, prompt) for test in tests
    ):
        yield "tests_in_prompt", "a program can repeat the outputs that the prompt shows"
    reference = grade(solution) if solution else None
    is_right = reference is not None and reference.is_right
    if not is_right and _is_wrapped(problem):
        yield "wrapped_gold", "each expected result is in a list of its own, as [3] for 3"
    elif reference and not is_right:
        yield "solution_is_wrong", _first_failure(reference)
    for name, passes in _poor_programs(problem, grade):
        if passes:
            yield "wrong_is_right", f"a program that {name} passes all tests"
            return


def _first_failure(grade: Grade) -> str:
    """Return the first failing test in a line."""
    words = {name: " ".join(text.split())[:120] for name, text in grade.failure.items()}
    reason = words.pop("reason", "no test was run")
    facts = "; ".join(
        f"{name} {words[name]!r}" for name in ("input", "expected", "got") if words.get(name)
    )
    return (
        f"it passes {grade.passed} of {grade.total} tests; the first that fails: {reason}; {facts}"
    )


def _is_exact(problem: Problem) -> bool:
    """Whether the tests ask for one output; tests that are code may accept several."""
    return problem.kind != "tests" or not any(_FREE_TEST.search(text) for text, _ in problem.tests)


def _is_wrapped(problem: Problem) -> bool:
    outputs = [expected for _, expected in problem.tests]
    return problem.kind == "call" and all(
        isinstance(each, list) and len(each) == 1 for each in outputs
    )


def _is_shown(problem: Problem, given: Any, expected: Any, prompt: str) -> bool:
    """Whether a prompt has a test: its input, and its output soon after it."""
    if problem.kind == "tests":
        lines = [each.strip() for each in given.splitlines()]
        claims = [each for each in lines if each.startswith("assert ")]
        return bool(claims) and all(each in prompt for each in claims)
    if problem.kind == "run":
        text, parts, output = f" {' '.join(prompt.split())} ", [given], expected
    else:
        text = _compact(prompt)
        parts, output = [*map(_json, (*given[0], *given[1].values()))], _json(expected)
    place = -1
    for _ in range(_PLACES):
        place = _find(text, parts[0] if parts else "", place + 1)
        end = place
        for part in parts[1:]:
            end = _find(text, part, end) if end >= 0 else end
        if place < 0 or end < 0:
            return False
        end += len(" ".join(parts[-1].split())) if parts else 0
        if 0 <= _find(text, output, end) - end <= _NEAR:
            return True
    return False


def _json(value: Any) -> str:
    return _compact(json.dumps(value, ensure_ascii=False))


def _compact(text: str) -> str:
    """Return a text without the blanks around brackets and commas."""
    return re.sub(r"\s*([\[\](){},:])\s*", r"\1", text)


def _find(text: str, part: str, start: int) -> int:
    """Return where a part stands for itself in a text, not within a word or number; -1 if nowhere."""
    part = " ".join(part.split())
    while (place := text.find(part, start)) >= 0:
        sides = text[place - 1 : place], text[place + len(part) : place + len(part) + 1]
        if not any(side.isalnum() for side in sides):
            return place
        start = place + 1
    return -1


def _poor_programs(problem: Problem, grade: Callable[[str], Grade]) -> Iterator[tuple[str, bool]]:
    """Yield what a poor program does, and whether it passes all tests.

    Printed or returned outputs are compared without running anything, if no checker of the row judges them.
    """
    is_python = problem.settings["language"] == "python"
    if is_python:
        yield "does nothing", grade("pass").is_right
    outputs = [expected for _, expected in problem.tests]
    repeats, constant = "repeats its input", "always gives the first expected output"
    if problem.kind == "run" and not problem.settings["checker"]:
        first, inputs = _bytes(outputs[0]), [_bytes(given) for given, _ in problem.tests]
        yield repeats, all(map(same_text, inputs, outputs))
        yield constant, all(same_text(first, each) for each in outputs)
    elif problem.kind == "call":
        yield repeats, all(given[0] and same_value(given[0][0], o) for given, o in problem.tests)
        yield constant, all(same_value(outputs[0], each) for each in outputs)
    elif is_python and problem.kind == "run":
        yield repeats, grade("import sys\nprint(sys.stdin.read())").is_right
        yield constant, grade(f"print({outputs[0]!r})").is_right
    elif is_python and (name := problem.entry_point or _called(problem.tests[0][0])):
        yield "returns None", grade(_function(name, "None")).is_right
        yield repeats, grade(_function(name, "[*given, None][0]")).is_right


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _called(test: str) -> str:
    """Return the name of the function that tests in code take from the program; "" if unclear."""
    match = _CALLED.search(test)
    return match[1] or match[2] if match else ""


def _function(name: str, result: str) -> str:
    """Return a program whose function, `f` or `Solution().f`, gives the same result for all arguments."""
    kind, _, method = name.rpartition("().")
    if kind:
        return f"class {kind}:\n    def {method}(self, *given, **named):\n        return {result}\n"
    return f"def {name}(*given, **named):\n    return {result}\n"
