"""Function calls in a response, in the forms of Hermes, Qwen, Llama, OpenAI, ToolRL and BFCL.

A response is read from the end of its thought on, without `<tool_response>` blocks, which are a tool's words. Its
calls are all in `<tool_call>` blocks, or all after `<|python_tag|>` or `[TOOL_CALLS]`, or in the fence, or the JSON
or line of their own, with which it ends. A call is `{"name": ..., "arguments": {...}}`, with `parameters` for
`arguments`, inside `function`, and its arguments may be JSON text; or it is Python, `f(a=1)` or
`[f(a=1), g(b="x")]`, which is rewritten as JSON, sign by sign: names with literals, without positions, variables or
operators. Nothing is evaluated.

Qwen3-Coder writes `<function=NAME><parameter=KEY>VALUE</parameter></function>`, with or without `<tool_call>`, and
a value without a type. As in vLLM's parser `qwen3_coder`, a line end on either side is not part of it, and its type is
that of the tool's schema; without a schema it is text, or what it is as JSON or Python, whichever the gold has.
vLLM and verl disagree on what is not closed or nested; here it is not a call.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from rewardkit.structures.json_text import (
    MAX_DIGITS,
    UnreadableJSONError,
    last_value,
    read_value,
    read_values,
    text_after_thought,
)

BEGIN, END = "<tool_call>", "</tool_call>"
_RESULT, _RESULT_END = "<tool_response>", "</tool_response>"

#: Signs, names and values of calls in Python's syntax.
MAX_TOKENS = 4_000

_MARKS = ("<|python_tag|>", "[TOOL_CALLS]")

#: The start of a call, the name of an argument, a constant, a number, a text, a sign.
_TOKEN = re.compile(
    r"\s*(?:([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\(|([^\W\d]\w*)\s*=|([^\W\d]\w*)"
    r"|([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|([\[\](){},:]))"
)
_BRACKETS = {"(": (")", "]"), "[": ("]", "]"), "{": ("}", "}")}
_SPECIAL = re.compile(r"<\|\w+\|>")
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U00((?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|(.))"
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}

#: A call of Qwen3-Coder: its start, one of its values, its end.
_FUNCTION = "<function="
_XML_START = re.compile(r"\s*<function=([^<>\s]{1,200})>")
_XML_VALUE = re.compile(r"\s*<parameter=([^<>\s]{1,200})>\n?(.*?)\n?</parameter>", re.DOTALL)
_XML_END = re.compile(r"\s*</function>\s*(?:</tool_call>\s*)?")
_TEXT_TYPES = frozenset({"string", "str", "text", "varchar", "char", "enum"})

#: The type of each argument of each function, by its schema.
Types: TypeAlias = Mapping[tuple[str, str], str]


class UnreadableCallError(ValueError):
    """A text is not a list of calls."""


class Untyped(str):
    """A value of which a call gives the text and not the type."""

    __slots__ = ()


class Call(NamedTuple):
    """A call of a function."""

    name: str
    arguments: dict[str, Any]


def read_calls(response: str, types: Types | None = None) -> list[Call]:
    """Return the calls of a response; [] if it has none.

    Args:
        response: the response.
        types: the types of arguments, for calls that do not say them.

    Raises:
        UnreadableCallError: it has a text in the place of calls that does not consist of calls.
    """
    first, *others = text_after_thought(response).split(_RESULT)
    text = "\n".join([first, *(other.partition(_RESULT_END)[2] for other in others)])
    if BEGIN in text:
        blocks = [part.partition(END)[0] for part in text.split(BEGIN)[1:]]
        return [call for block in blocks for call in calls_of(block, types)]
    if _FUNCTION in text:
        return calls_of(text[text.index(_FUNCTION) :], types)
    for mark in _MARKS:
        if mark in text:
            return calls_of(_SPECIAL.sub("", text.rpartition(mark)[2]))
    text = _SPECIAL.sub("", text).strip()
    if text.endswith("```"):
        text = text[:-3].rpartition("```")[2].partition("\n")[2].strip()
    for part in dict.fromkeys((text, text.rpartition("\n")[2])):
        if part[:1] in ("{", "[") or part.endswith(")"):
            try:
                return calls_of(part)
            except UnreadableCallError:
                continue
    return _last_json_calls(text)


def _last_json_calls(text: str) -> list[Call]:
    try:
        last = last_value(text)
    except UnreadableJSONError as error:
        raise UnreadableCallError(str(error)) from error
    if last is None or not text.endswith(last[1]):
        return []
    before = text.removesuffix(last[1]).rstrip(" ")
    return calls_of(last[1]) if before[-1:] in ("", "\n") else []  # "not {...}" is not a call


def types_of(tools: Any) -> Types:
    """Return the types of arguments in the schemas of tools: a list, or its JSON text; {} for anything else."""
    if isinstance(tools, str):
        try:
            tools = read_value(tools)
        except UnreadableJSONError:
            return {}
    types = {}
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function", tool) if isinstance(tool, dict) else {}
        function = function if isinstance(function, dict) else {}
        schema = function.get("parameters")
        fields = schema.get("properties", schema) if isinstance(schema, dict) else None
        for key, field in fields.items() if isinstance(fields, dict) else ():
            if isinstance(field, dict) and isinstance(field.get("type"), str):
                types[str(function.get("name")), str(key)] = field["type"].partition(",")[0].lower()
    return types


def _read_xml(text: str, types: Types) -> list[Call]:
    calls, place = list[Call](), 0
    while start := _XML_START.match(text, place):
        arguments, place = dict[str, Any](), start.end()
        while match := _XML_VALUE.match(text, place):
            key, value = match.groups()
            if key in arguments or "<parameter=" in value or _FUNCTION in value:
                raise UnreadableCallError(f"a value is not closed, or {key!r} is repeated")
            kind = types.get((start[1], key))
            typed = value if kind in _TEXT_TYPES else readings(Untyped(value))[-1]
            arguments[key] = typed if kind else Untyped(value)
            place = match.end()
        if not (end := _XML_END.match(text, place)):
            raise UnreadableCallError("a call is not closed")
        place = end.end()
        calls.append(Call(start[1], arguments))
    if place < len(text):
        raise UnreadableCallError("there is a text beside a call")
    return calls


def readings(value: Any) -> list[Any]:
    """Return what a value may be: the text of an untyped one, and last what it is as JSON or Python."""
    if not isinstance(value, Untyped):
        return [value]
    try:
        values = read_values(value)
    except UnreadableJSONError:
        try:
            values = _read_python(value)
        except UnreadableCallError:
            values = []
    return [str(value), *values[:1]] if len(values) == 1 else [str(value)]


def calls_of(text: str, types: Types | None = None) -> list[Call]:
    """Return the calls of which a text consists, at least one.

    Raises:
        UnreadableCallError: it has something else.
    """
    if text.lstrip().startswith(_FUNCTION):
        return _read_xml(text, types or {})
    try:
        values = read_values(text)
    except UnreadableJSONError:
        values = _read_python(text)
    calls = [call for value in values for call in _calls_in(value)]
    if not calls:
        raise UnreadableCallError("there is no call")
    return calls


def _calls_in(value: Any) -> list[Call]:
    if isinstance(value, dict):
        if isinstance(value.get("tool_calls"), list):  # a whole message of OpenAI
            return _calls_in(value["tool_calls"])
        return [call_of(value)]
    if isinstance(value, list):
        return [call_of(item) for item in value]
    raise UnreadableCallError("a call is an object")


def call_of(value: Any) -> Call:
    """Return the call in an object of JSON.

    Raises:
        UnreadableCallError: it has no name, or no arguments by name.
    """
    value = value.get("function", value) if isinstance(value, dict) else value
    names = ("arguments", "parameters")
    present = [name for name in names if isinstance(value, dict) and name in value]
    if len(present) != 1 or not isinstance(value.get("name"), str):
        raise UnreadableCallError('a call is {"name": ..., "arguments": {...}}')
    arguments = value[present[0]]
    if isinstance(arguments, str):
        try:
            arguments = read_value(arguments)
        except UnreadableJSONError as error:
            raise UnreadableCallError(f"its arguments: {error}") from error
    if not isinstance(arguments, dict):
        raise UnreadableCallError("its arguments are not an object")
    return Call(value["name"], arguments)


def _read_python(text: str) -> list[Any]:
    try:
        return read_values(_python_as_json(text))
    except UnreadableJSONError as error:
        raise UnreadableCallError("it is neither JSON nor calls in Python's syntax") from error


def _python_as_json(text: str) -> str:
    """Return calls in Python's syntax as JSON; what is not Python is not JSON either."""
    out: list[str] = []
    ends: list[tuple[str, str]] = []
    place = 0
    while len(out) < MAX_TOKENS and (match := _TOKEN.match(text, place)):
        place = match.end()
        out.append(_literal(match) or _bracket(match, ends))
        if match[6] in (")", "]", "}") and out[-2:-1] == [","]:
            del out[-2]  # Python allows a comma before an end
    if place < len(text.rstrip()) or ends:
        raise UnreadableCallError("it is neither JSON nor calls in Python's syntax")
    return " ".join(out)  # 1+1 is not 11


def _literal(match: re.Match[str]) -> str:
    """Return a constant, number, text or comma as JSON; "" for anything else."""
    *_, word, number, string, sign = match.groups()
    if number and len(number) <= MAX_DIGITS:
        return repr(int(number) if number.lstrip("+-").isdecimal() else float(number))
    if string:
        return json.dumps(_ESCAPE.sub(_character, string[1:-1]))
    return "," if sign == "," else _CONSTANTS.get(word, "")


def _bracket(match: re.Match[str], ends: list[tuple[str, str]]) -> str:
    """Return a bracket, the start of a call or a name as JSON, and note the end that has to follow."""
    call, key, *_, sign = match.groups()
    is_argument = bool(ends) and ends[-1][1] == "}}"
    if call and not any(end == "}}" for _, end in ends):
        ends.append((")", "}}"))
        return f'{{"name": {json.dumps(call)}, "arguments": {{'
    if key and is_argument:
        return f"{json.dumps(key)}:"
    if sign in _BRACKETS:
        ends.append(_BRACKETS[sign])
        return "{" if sign == "{" else "["
    if sign == ":" and not is_argument:
        return sign
    if ends and sign == ends[-1][0]:
        return ends.pop()[1]
    raise UnreadableCallError(f"{match[0].strip()[:80]!r} is neither JSON nor part of a call")


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _ESCAPED.get(match[4], match[4])
