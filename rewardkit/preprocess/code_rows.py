"""Rows whose gold is tests: the ground truth of `programs.problem` from a card's `tests` and the parts beside it.

`tests` is read in each layout that a public set has, alone or as text: JSON, JSON in JSON, or either
compressed by zlib and in base64, as LiveCodeBench's private tests are. Those are pickled as well: that is read
without pickle, because a pickle may run code.

| value | a test is |
|---|---|
| `{inputs, outputs, fn_name}` | an input and its output (Eurus-2, APPS, TACO) |
| `[{input, output, type or testtype, fn_name or metadata.func_name}]` | the same (DeepCoder, LiveCodeBench, open-r1) |
| `["assert f(1) == 2"]` | an assertion (MBPP) |
| a program | its `check(candidate)`, its assertions or its `test_*` (HumanEval, LeetCodeDataset, KodCode) |
"""

import json
import re
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.preprocess.column_map import ColumnMap, UnreadableValueError, as_plain_text
from rewardkit.programs.problem import MAX_CHARACTERS, MAX_GROUND_TRUTH, ProblemError, read_problem

#: Characters of a ground truth that stays readable; a longer one is compressed.
MAX_PLAIN = 50_000

#: Sites of which TACO and APPS have each expected result in a list of one.
_WRAPPING_SITES = ("codewars", "geeksforgeeks")

#: The kinds of a test that calls a function, as DeepCoder and as LiveCodeBench name them.
_CALLS = ("function_call", "functional")

#: The beginning of compressed data in base64.
_COMPRESSED = re.compile(r"e[AFJN][A-Za-z0-9+/]{2}")

#: The parts that the ground truth has as they are, and whether they are numbers.
_SETTINGS = dict.fromkeys("prelude prompt checker language".split(), False)
_SETTINGS |= {"time_limit": True, "memory_limit": True}


def question_with_code(question: str, starter: str, entry_point: str) -> str:
    """Return a question with the code that a program begins with, and with the name of its function."""
    if starter.strip():
        question = f"{question}\n\nThe program begins with:\n\n```python\n{starter.strip()}\n```"
    name = entry_point.rpartition(".")[2]
    if name and not re.search(rf"\b{re.escape(name)}\b", question):
        question += f"\n\nThe function is called `{name}`."
    return question.strip()


def ground_truth(raw: Mapping[str, Any], layout: ColumnMap) -> tuple[str, str]:
    """Return the tests of a raw row as a ground truth, and the name of the function that they call.

    Raises:
        UnreadableValueError: there are no tests, or they are in no known layout or too many.
    """
    entry, site = text_of(layout, "entry_point", raw), text_of(layout, "site", raw).lower()
    try:
        values = [_cases(_read(field.value(raw)), entry) for field in layout["tests"]]
        problem = _joined([value for value in values if value])
        if site and any(name in site for name in _WRAPPING_SITES):
            problem = _unwrapped(problem)
        for name, is_number in _SETTINGS.items():
            value = layout[name][0].value(raw) if layout[name] else None
            if value:
                problem[name] = _number(value) if is_number else text_of(layout, name, raw)
        if entry and "test" in problem:
            problem["entry_point"] = entry
        text = json.dumps(_with_line_feeds(problem), ensure_ascii=False)
    except RecursionError:
        raise UnreadableValueError("the tests are nested too deeply") from None
    stored = text
    if len(text) > MAX_PLAIN:
        data = b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()
        stored = json.dumps({"zlib": data})
    if len(text) > MAX_CHARACTERS or len(stored) > MAX_GROUND_TRUTH:
        size = f"{len(text) / 1e6:,.0f} MB, {len(stored) / 1e6:,.0f} MB compressed"
        raise UnreadableValueError("the tests are too long", size)
    try:
        read = read_problem(stored)
    except ProblemError as error:
        raise UnreadableValueError(f"the tests cannot be run: {error}") from None
    return stored, read.entry_point


def text_of(layout: ColumnMap, part: str, raw: Mapping[str, Any], joint: str = "\n") -> str:
    """Return the text of a part; the texts of a list and of several columns are joined."""
    values = [field.value(raw) for field in layout[part]]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return joint.join(filter(None, map(as_plain_text, items))).replace("\r\n", "\n")


def _read(value: Any) -> Any:
    """Return the tests in a value; text that is not data is a program."""
    for _ in range(3):
        if not isinstance(value, str):
            break
        text = value.strip()
        if len(text) > 2 * MAX_CHARACTERS:
            raise UnreadableValueError("the tests are too long", f"{len(text) / 1e6:,.0f} MB")
        if _COMPRESSED.match(text):
            value = _decompressed(text)
        elif text[:1] in ("[", "{", '"'):
            try:
                value = json.loads(text)
            except ValueError:
                break
    return value


def _decompressed(text: str) -> str:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(b64decode(text, validate=True), MAX_CHARACTERS)
        if reader.unconsumed_tail:
            size = f"more than {MAX_CHARACTERS / 1e6:,.0f} MB"
            raise UnreadableValueError("the tests are too long", size)
        if reader.eof:
            return pickled_text(data) if data[:1] == b"\x80" else data.decode()
    except (zlib.error, Base64Error, UnicodeDecodeError):
        pass
    raise UnreadableValueError("the tests are not compressed text")


def pickled_text(data: bytes) -> str:
    """Return the one text that a pickle has, which nothing here runs.

    Raises:
        UnreadableValueError: it has another instruction than those of a text (`pickletools` names them).
    """
    #: The bytes of an instruction's argument, and for a text those of its length.
    skipped = {0x80: 1, 0x95: 8, 0x94: 0, ord("q"): 1}  # PROTO, FRAME, MEMOIZE, BINPUT
    lengths = {0x8C: 1, ord("X"): 4, 0x8D: 8}  # SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
    position, texts = 0, list[str]()
    while position < len(data):
        code, position = data[position], position + 1
        if code == ord(".") and len(texts) == 1:
            return texts[0]
        if code in skipped:
            position += skipped[code]
        elif code in lengths and not texts:
            start = position + lengths[code]
            position = start + int.from_bytes(data[position:start], "little")
            texts.append(data[start:position].decode("utf-8", "surrogatepass"))
        else:
            break
    raise UnreadableValueError("the tests are a pickle of something else than a text")


def _cases(value: Any, entry: str) -> dict[str, Any]:
    """Return tests as the ground truth has them."""
    if value is None or value in ("", [], {}):
        return {}
    if isinstance(value, str):
        return {"test": value}
    if isinstance(value, list) and all(isinstance(case, str) for case in value):
        return {"assert_case": value}
    if isinstance(value, Mapping) and "input" in value and isinstance(value["input"], list):
        value = {"inputs": value["input"], "outputs": value.get("output")}
    if isinstance(value, Mapping) and "inputs" in value:
        names = {str(value["fn_name"])} if value.get("fn_name") else set[str]()
        return _named(value["inputs"], value.get("outputs"), names)
    if not isinstance(value, list) or not all(
        isinstance(case, Mapping) and "input" in case for case in value
    ):
        raise UnreadableValueError("the tests are in no known layout")
    kinds = {(case.get("type") or case.get("testtype")) in _CALLS for case in value}
    names = {str(name) for case in value if (name := case.get("fn_name") or _own_name(case))}
    if kinds == {True} and not names:
        names = {entry}
    if len(kinds) > 1 or len(names) > 1 or "" in names:
        raise UnreadableValueError("the tests call no function, or several")
    outputs = [case.get("output") for case in value]
    return _named([case["input"] for case in value], outputs, names if True in kinds else set())


def _number(value: Any) -> float:
    try:
        return float(as_plain_text(value))
    except ValueError:
        raise UnreadableValueError("a limit is not a number") from None


def _own_name(case: Mapping[str, Any]) -> Any:
    facts = _read(case.get("metadata"))
    return facts.get("func_name") if isinstance(facts, Mapping) else None


def _named(inputs: Any, outputs: Any, names: set[str]) -> dict[str, Any]:
    pairs = {"inputs": inputs, "outputs": outputs}
    return {**pairs, "fn_name": min(names)} if names else pairs


def _joined(values: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tests of several columns together."""
    if not values:
        raise UnreadableValueError("no tests")
    first, *others = values
    for other in others:
        if other.keys() != first.keys() or "test" in first:
            raise UnreadableValueError("the columns have tests of several kinds")
        first = {
            key: [*value, *other[key]] if isinstance(value, list) else value
            for key, value in first.items()
        }
    return dict(first)


def _unwrapped(problem: dict[str, Any]) -> dict[str, Any]:
    """Return the tests of a function with the results that are in lists of one, if all are."""
    outputs = problem.get("outputs")
    if "fn_name" not in problem or not isinstance(outputs, list):
        return problem
    is_wrapped = all(isinstance(each, list) and len(each) == 1 for each in outputs)
    return {**problem, "outputs": [each[0] for each in outputs]} if is_wrapped else problem


def _with_line_feeds(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    if isinstance(value, (list, tuple)):
        return [_with_line_feeds(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _with_line_feeds(each) for key, each in value.items()}
    return value
