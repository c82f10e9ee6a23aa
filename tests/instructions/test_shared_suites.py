"""The published suites of IFEval and IFBench, run with our constraints in place of their classes.

They are not ours to copy: REWARDKIT_SHARED names the folder that has them.
"""

import json
import os
import sys
import types
import unittest
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from rewardkit.instructions.ground_truth import read_constraints
from rewardkit.scorers.instructions import score

SUITES = Path(os.environ.get("REWARDKIT_SHARED", "."), "cases", "if_tests")
GOOGLE = SUITES / "josejg+instruction_following_eval" / "test_instructions_test.py"
ALLEN = SUITES / "allenai+IFBench"
pytestmark = pytest.mark.skipif(not GOOGLE.is_file(), reason="REWARDKIT_SHARED has no if_tests")


#: Ids that the suites write otherwise than the data sets; None for those that no data set has.
OTHER_IDS = {
    "keywords:include_keywords": "keywords:existence",
    "keywords:keyword_frequency": "keywords:frequency",
    "length_constraint:number_words": "length_constraints:number_words",
    "length_constraint:number_paragraphs": "length_constraints:number_paragraphs",
    "detectable_format:exact_number_bullet_points": "detectable_format:number_bullet_lists",
    "detectable_format:minimum_number_highlighted_sections": (
        "detectable_format:number_highlighted_sections"
    ),
    "custom:repeat_change": "repeat:repeat_change",
    "CharacterReverseOrderChecker": "custom:character_reverse",
    "WordReverseOrderChecker": "custom:word_reverse",
    "PrintMultiplesChecker": "custom:multiples",
    "keywords:conjunction_count": "count:conjunctions",
    "keywords:person_name": "count:person_names",
    **dict.fromkeys(
        (
            "multi-turn:constrained_start",
            "keywords:key_sentences",
            "detectable_format:rephrasing",
            "detectable_content:rephrase_paragraph",
        )
    ),
}


class Instruction:
    """Google's interface of an instruction, around one of our constraints."""

    def __init__(self, name, class_name=""):
        self.name, self.arguments = OTHER_IDS.get(class_name, OTHER_IDS.get(name, name)), {}
        if self.name is None:
            raise unittest.SkipTest(f"{name} is in no data set")

    def build_description(self, **arguments):
        self.arguments = {
            key: sorted(value) if isinstance(value, (set, list, tuple)) else value
            for key, value in arguments.items()
        }
        return ""

    def check_following(self, value):
        gold = {"instruction_id_list": [self.name], "kwargs": [self.arguments]}
        (constraint,) = read_constraints(json.dumps(gold))
        return bool(value.strip()) and constraint.check(value, **constraint.arguments)


class AnyClass(types.ModuleType):
    """A module in which every class is `Instruction`."""

    _COMPARISON_RELATION = ("less than", "at least")
    _POSTSCRIPT_MARKER = ("P.S.", "P.P.S")
    _CONSTRAINED_RESPONSE_OPTIONS = (
        "My answer is yes.",
        "My answer is no.",
        "My answer is maybe.",
    )

    def __getattr__(self, name):
        return partial(Instruction, class_name=name)


def suite(file, names):
    """Return the tests of a suite and their outcome: "", or why one failed."""
    fakes = {name: AnyClass(name) for name in names}
    for name in names[1:]:
        setattr(fakes[names[0]], name.rpartition(".")[2], fakes[name])
    fakes["absl"], fakes["absl.testing"] = (
        types.ModuleType("absl"),
        types.ModuleType("absl.testing"),
    )
    testing = fakes["absl.testing"]
    testing.absltest, testing.parameterized = types.ModuleType("a"), types.ModuleType("p")
    testing.absltest.TestCase = unittest.TestCase
    testing.parameterized.TestCase = unittest.TestCase

    def parameters(*rows):
        rows = list(rows[0]) if len(rows) == 1 and isinstance(rows[0], list) else rows

        def wrap(function):
            def run(self):
                for row in rows:
                    with self.subTest(row=row):
                        if isinstance(row, dict):
                            row.pop("testcase_name")
                            function(self, **row)
                        else:
                            function(self, *row)

            return run

        return wrap

    testing.parameterized.parameters = testing.parameterized.named_parameters = parameters
    source = file.read_text("utf-8")
    saved = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        scope = {"__name__": "suite", "__file__": str(file)}
        exec(compile(source, str(file), "exec"), scope)
    finally:
        for name, module in saved.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
    outcome = {}
    case = scope["InstructionsTest"]
    for name in unittest.TestLoader().getTestCaseNames(case):
        result = unittest.TestResult()
        case(name).run(result)
        outcome[name] = "\n".join(text for _, text in result.failures + result.errors)
    return outcome


PACKAGE = "instruction_following_eval"

#: Tests of what we do not have: descriptions of constraints, and verdicts on an empty response.
OTHERS = {
    "test_get_instruction_args",
    "test_quote_explanation__handles_empty_string_after_stripping",
}


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (GOOGLE, (PACKAGE, f"{PACKAGE}.instructions")),
        (
            ALLEN / "instructions_test.py",
            ("ifbench", "ifbench.instructions", "ifbench.classic_instructions"),
        ),
    ],
)
def test_the_published_tests_pass(file, names):
    outcome = suite(file, names)
    assert len(outcome) > 25
    assert {name: why for name, why in outcome.items() if why and name not in OTHERS} == {}


def rows(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def disagreements(response, ids, kwargs, verdicts, mode, info=None):
    """Return the ids on which we do not agree with the verdicts on a response."""
    return [
        name
        for name, arguments, verdict in zip(ids, kwargs, verdicts, strict=True)
        for gold in [json.dumps({"instruction_id_list": [name], "kwargs": [arguments]})]
        if score(response, gold, info, mode=mode).correct != verdict
    ]


@pytest.mark.full
def test_at_least_995_of_1000_verdicts_of_ifevals_checker_are_ours():
    """The ten others are langdetect's: a single word, and English capitals, are not English to it."""
    others = Counter()
    cases = rows(SUITES.parent / "if_ifeval.jsonl")
    for case in cases:
        for mode in ("strict", "loose"):
            sample = case.get("response") or "", case["instruction_id_list"], case["kwargs"]
            others.update(disagreements(*sample, case[mode], mode))
    assert others == {"change_case:english_lowercase": 6, "change_case:english_capital": 4}


@pytest.mark.full
def test_at_least_98_of_100_verdicts_of_ifbenchs_checker_are_ours():
    """The others: its tagger takes `Build` for a noun, and an apostrophe is a quotation mark to it."""
    others = Counter()
    problems = {row["prompt"].strip(): row for row in rows(ALLEN / "data_IFBench_test.jsonl")}
    responses = {row["prompt"]: row["response"] for row in rows(ALLEN / "data_sample_output.jsonl")}
    for mode in ("strict", "loose"):
        for case in rows(ALLEN / f"eval_eval_results_{mode}.jsonl"):
            if row := problems.get(case["prompt"].strip()):
                sample = responses[case["prompt"]], row["instruction_id_list"], row["kwargs"]
                info = {"question": case["prompt"]}
                others.update(disagreements(*sample, case["follow_instruction_list"], mode, info))
    assert others == {
        "format:quotes": 4,
        "words:start_verb": 4,
        "format:no_bullets_bullets": 1,
    }
