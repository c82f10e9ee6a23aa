r"""DianJin-R1's choice questions: Chinese finance exams (https://huggingface.co/datasets/DianJin/DianJin-R1-Data).

A raw row of `train/cflue_mcq.json` (an example of ours)::

    {"instruction": "假设你是一位金融行业专家，请回答下列问题。\n注意：题目是单选题，...\n\n
                     下列属于货币市场工具的是（）。\nA. 股票\nB. 国库券\n\n
                     请一步步思考，并把答案选项放到\\boxed{}中，如\\boxed{A}。\n",
     "output": "<think>\n...\n</think>\n\n<answer>\n...\\boxed{B}\n</answer>"}

The questions are those of CFLUE (https://github.com/aliyun/cflue). Its own files can be read, too::

    {"名称": "证券从业资格", "task": "单项选择题", "question": "下列属于货币市场工具的是（）。",
     "choices": "{'A': '股票', 'B': '国库券'}", "answer": "B", "analysis": null}

The gold is the set of letters in the box of the output's `<answer>`. The instruction is not
searched, because it contains a box as an example.
"""

import ast
import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from rewardkit.answers.choices import read_gold
from rewardkit.answers.extract import boxes, texts_between
from rewardkit.preprocess.base import Dataset, Dropped, Problem

_BEFORE = "假设你是一位金融行业专家，请回答下列问题。\n注意：题目是"
_NOTES = {
    "single": "单选题，只需要返回一个最合适的选项，若有多个合适的答案，只返回最准确的即可。",
    "multiple": "多选题，可能存在多个正确的答案。",
}
_AFTER = "请一步步思考，并把答案选项放到\\boxed{}中，如\\boxed{%s}。\n"
_TASKS = {"单项选择题": "single", "多项选择题": "multiple", "判断题": "true_false"}
_TRUE_FALSE = ({"对", "错"}, {"正确", "错误"})

_LABEL = re.compile(r"^([A-G])\. ", re.MULTILINE)
_LETTERS = frozenset("ABCDEFG")
#: Maximum number of characters of CFLUE's options; the longest have 635.
_MAX_CHOICES = 20_000


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a row of DianJin or CFLUE; drop it if its answer is not clear."""
    problem = _from_dianjin(raw) if "instruction" in raw else _from_cflue(raw)
    if isinstance(problem, Problem) and (fault := _fault(problem)):
        return Dropped(fault, f"gold {problem.ground_truth!r}, {len(problem.options)} options")
    return problem


def _from_dianjin(raw: Mapping[str, Any]) -> Problem | Dropped:
    instruction, output = raw["instruction"], raw["output"]
    if not (isinstance(instruction, str) and isinstance(output, str)):
        return Dropped("unexpected type")
    answers = texts_between(output, "<answer>", "</answer>")
    if not answers:
        return Dropped("no <answer> in the output")
    golds = {read_gold(box, _LETTERS) for answer in answers for box in boxes(answer)}
    if len(golds) != 1:
        return Dropped("several answers" if golds else "no box in <answer>", answers[-1][-80:])
    gold = golds.pop()
    if gold is None:
        return Dropped("no letters in the box", boxes(answers[-1])[-1][:80])
    question = _question(instruction)
    options = _options(question)
    if set(options) in _TRUE_FALSE:
        kind = "true_false"
    else:
        kind = "multiple" if "多选题" in instruction.partition("\n\n")[0] else "single"
    return Problem(
        question,
        "".join(sorted(gold)),
        answer=output,
        kind=kind,
        options=options,
        prompt=instruction,
    )


def _from_cflue(raw: Mapping[str, Any]) -> Problem | Dropped:
    kind, choices = _TASKS.get(raw["task"]), _choices(raw["choices"])
    if kind is None:
        return Dropped("not a choice question", raw["task"])
    gold = read_gold(raw["answer"], _LETTERS)
    if choices is None or gold is None:
        return Dropped("no letters in the answer" if choices else "the options cannot be read")
    listed = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
    question = raw["question"] + "\n" + listed
    note = _NOTES["multiple" if kind == "multiple" else "single"]
    example = "AB" if kind == "multiple" else "A"
    return Problem(
        question.strip(),
        "".join(sorted(gold)),
        subject=raw["名称"],
        kind=kind,
        options=tuple(choices.values()),
        prompt=f"{_BEFORE}{note}\n\n{question}\n\n{_AFTER % example}",
    )


def _question(instruction: str) -> str:
    text = instruction.strip()
    if text.startswith("假设你是"):
        text = text.partition("\n\n")[2]
    before, mark, _ = text.rpartition("\n\n请一步步思考")
    return (before if mark else text).strip()


def _options(question: str) -> tuple[str, ...]:
    """Return the texts after the last labels `A.`, `B.`, ..., in order and at the start of lines."""
    labels = list(_LABEL.finditer(question))
    first = max((i for i, label in enumerate(labels) if label[1] == "A"), default=len(labels))
    labels = labels[first:]
    if not labels or "".join(label[1] for label in labels) != ascii_uppercase[: len(labels)]:
        return ()
    ends = [*(label.start() for label in labels[1:]), len(question)]
    return tuple(
        question[label.end() : end].strip() for label, end in zip(labels, ends, strict=True)
    )


def _choices(text: str) -> dict[str, str] | None:
    """Return the options by letter, from A on; CFLUE writes a Python dictionary as text."""
    if len(text) > _MAX_CHOICES:
        return None
    try:
        choices = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(choices, dict) or list(choices) != list(ascii_uppercase[: len(choices)]):
        return None
    return choices if all(isinstance(text, str) for text in choices.values()) else None


def _fault(problem: Problem) -> str:
    if len(problem.options) < 2:
        return "fewer than two options"
    if problem.ground_truth[-1] not in ascii_uppercase[: len(problem.options)]:
        return "the gold is not among the options"
    if len(problem.ground_truth) > 1 and problem.kind != "multiple":
        return "several letters for one choice"
    return ""


DATASET = Dataset("dianjin-mcq", to_problem)
