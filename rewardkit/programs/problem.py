"""The tests of a row, as its ground truth has them.

The ground truth is a JSON object in one of three shapes, or `{"zlib": "..."}`, which is the text of one
of them, compressed and in base64:

| shape | from | a test is |
|---|---|---|
| `{"inputs": [...], "outputs": [...]}` | Eurus-2, verl's `prime_code` | standard input and output |
| the same with `"fn_name"` | | arguments and a result; text is one JSON value a line |
| `{"assert_case": [...]}` | verl's SandboxFusion client, MBPP | a Python assertion |
| `{"test": "...", "entry_point": "f"}` | HumanEval, LeetCodeDataset, KodCode | `check(candidate)` or `test_*` |

Other keys, all optional: `prelude` (code that both the program and its tests get, such as imports and
`class ListNode`), `prompt` (code that goes before a program that does not define the entry point),
`checker` (a Python program that judges an output, see `grade`), `language`, `time_limit` in seconds and
`memory_limit` in MB.
"""

import json
import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Characters of the tests of one row, after decompression.
MAX_CHARACTERS = 1 << 26
#: Characters of a ground truth.
MAX_GROUND_TRUTH = 20_000_000

#: The names that a row or a fence has for a language; the first is SandboxFusion's own.
LANGUAGES = {
    "python": ("python", "py", "python3"),
    "cpp": ("cpp", "c++", "cc", "cxx"),
    "java": ("java",),
    "go": ("go", "golang"),
    "nodejs": ("javascript", "js", "nodejs", "node"),
}
_LANGUAGE_OF = {alias: name for name, aliases in LANGUAGES.items() for alias in aliases}


class ProblemError(ValueError):
    """A ground truth is not a problem; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Problem:
    """A program's task.

    Attributes:
        kind: `run` for standard input and output, `call` for arguments and a result, `tests` for
            tests that are code, and `assert` for those that `asserts` could read.
        tests: `(input, output)` of each test: text for `run`; `(arguments, keywords)` and a value for
            `call`; the text of assertions or of a file of tests for `tests`, without an output;
            arguments and an `Assertion` for `assert`.
        entry_point: the function `f`, or the method `Solution().f`; "" where there is none.
        settings: `prelude`, `prompt`, `checker`, `language` (SandboxFusion's name; Python if the row
            names none), `time_limit` and `memory_limit`.
    """

    kind: str
    tests: tuple[tuple[Any, Any], ...]
    entry_point: str
    settings: Mapping[str, Any]


def read_problem(ground_truth: str) -> Problem:
    """Return the problem of a ground truth.

    Raises:
        ProblemError: it has no tests, or tests that nothing can pass.
    """
    value = _read(ground_truth)
    settings = _settings(value)
    entry = str(value.get("entry_point") or value.get("fn_name") or "")
    if "assert_case" in value or "test" in value:
        key = "assert_case" if "assert_case" in value else "test"
        texts = value[key] if key == "assert_case" else [value[key]]
        if not texts or not isinstance(texts, list) or {*map(type, texts)} != {str}:
            raise ProblemError(f"its {key} is not a list of texts")
        return Problem("tests", tuple((text, None) for text in texts), entry, settings)
    inputs, outputs = value.get("inputs"), value.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise ProblemError("it has neither inputs and outputs nor assert_case nor test")
    if not inputs or len(inputs) != len(outputs):
        raise ProblemError(f"it has {len(inputs)} inputs and {len(outputs)} outputs")
    if any(output is None for output in outputs):
        raise ProblemError("an output is null")
    is_call = bool(value.get("fn_name"))
    read_input, read_output = (_arguments, _json) if is_call else (_lines, _lines)
    pairs = [(read_input(i), read_output(o)) for i, o in zip(inputs, outputs, strict=True)]
    return Problem("call" if is_call else "run", tuple(pairs), entry if is_call else "", settings)


def _settings(value: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key in ("prelude", "prompt", "checker", "language"):
        settings[key] = value.get(key) or ""
        if not isinstance(settings[key], str):
            raise ProblemError(f"its {key} is not text")
    name = settings["language"].strip()
    settings["language"] = _LANGUAGE_OF.get(name.lower(), name) or "python"
    for key in ("time_limit", "memory_limit"):
        settings[key] = value.get(key) or 0
        limit = settings[key]
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 0 <= limit < 1e6:
            raise ProblemError(f"its {key} is not a number from 0 to a million")
    return settings


def _read(text: str) -> Mapping[str, Any]:
    if len(text) > MAX_GROUND_TRUTH:
        raise ProblemError(f"it has more than {MAX_GROUND_TRUTH:,} characters")
    value = _object(text)
    if isinstance(data := value.get("zlib"), str):
        reader = zlib.decompressobj()
        try:
            content: Any = reader.decompress(b64decode(data, validate=True), MAX_CHARACTERS)
            content = content.decode()
        except (zlib.error, ValueError):
            raise ProblemError("its zlib is not compressed text in base64") from None
        if not reader.eof:
            raise ProblemError(f"its tests have more than {MAX_CHARACTERS:,} characters")
        return _object(content)
    return value


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ProblemError("it is not JSON") from None
    if not isinstance(value, dict):
        raise ProblemError("it is not a JSON object")
    return value


def _lines(value: Any) -> str:
    """Return standard input or output as text; TACO writes some as a list of lines.

    An input may be null, which verl's client of SandboxFusion takes for an empty one.
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(str, value)) + "\n"
    if not isinstance(value, (str, int, float)):
        raise ProblemError("an input or output is neither text nor a list of lines")
    return str(value)


def _arguments(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return positional and keyword arguments."""
    if isinstance(value, str):
        return [_json(line) for line in value.split("\n")], {}
    if isinstance(value, dict):
        return (), value
    if not isinstance(value, list):
        raise ProblemError("the arguments of a call are neither a list nor text")
    return value, {}


def _json(value: Any) -> Any:
    """Return the value of JSON text; a text that is not JSON, and any other value, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
