"""The validator of a row's JSON schema, with bounds on its steps, its patterns and its references."""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from math import inf, log10
from threading import local
from typing import Any, NamedTuple

from rewardkit.errors import MissingPackageError, call_catching
from rewardkit.structures.json_text import UnreadableJSONError, read_value

if sys.version_info >= (3, 11):
    from re import _parser  # type: ignore[attr-defined]  # the grammar of `re`, not a copy of it
else:
    import sre_parse as _parser

#: Steps of a validation: a keyword of the schema, an item, or 100 of a pattern's matcher. Values in a schema,
#: characters of a pattern.
MAX_STEPS, MAX_VALUES, MAX_PATTERN = 20_000, 5_000, 1_000

#: Keywords inside each other; each takes four frames of Python's stack.
MAX_NESTING = 100

#: Keywords with data in them.
_DATA = frozenset({"const", "default", "enum", "examples"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_SIMPLE = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY", "AT"})
_UNREAD = frozenset({"patternProperties", "unevaluatedItems", "unevaluatedProperties"})
_counter = local()


class UnreadableSchemaError(ValueError):
    """A ground truth has no schema, or one that cannot be scored."""


class TooManyStepsError(RuntimeError):
    """A validation takes too many steps."""


class Problem(NamedTuple):
    """A row: the validator of its schema, the gold if there is one, and how a value may begin."""

    validator: Any
    gold: Any
    has_gold: bool
    starts: str


def require_package(_options: Mapping[str, Any]) -> None:
    """Raise `MissingPackageError` if jsonschema is not installed."""
    if find_spec("jsonschema") is None:
        raise MissingPackageError("jsonschema is missing: pip install 'rewardkit[json-schema]'")


@lru_cache(maxsize=256)
def read_problem(text: str) -> Problem:
    """Return the schema and the gold of a ground truth.

    Raises:
        UnreadableSchemaError: it has no schema, or one that cannot be scored.
    """
    require_package({})
    row = _read(text)
    kind = row.pop("schema_type", "json") if isinstance(row, dict) else "json"
    if str(kind).lower() != "json":
        raise UnreadableSchemaError(f"the rows are {kind}; only JSON is read, not YAML or XML")
    if isinstance(row, dict) and "schema_str" in row:
        row["schema"] = row.pop("schema_str")
    is_whole = isinstance(row, dict) and "schema" in row
    schema = row["schema"] if is_whole else row
    schema = _read(schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict) or not schema.keys() - {
        "$schema",
        "$id",
        "title",
        "description",
    }:
        raise UnreadableSchemaError("its schema permits everything, or nothing")
    references = _check_keywords(schema)
    gold = row.get("gold") if is_whole else None
    problem = Problem(
        _validator(schema, references), gold, gold is not None, _starts(schema.get("type"))
    )
    if problem.has_gold and not _is_valid_gold(problem):
        raise UnreadableSchemaError("its gold is not valid for its schema, or takes too many steps")
    return problem


def _read(text: str) -> Any:
    try:
        return read_value(text)
    except UnreadableJSONError as error:
        raise UnreadableSchemaError(f"the schema or its row: {error}") from error


def _starts(kinds: Any) -> str:
    """Return how a value of these types begins."""
    kinds = [kinds] if isinstance(kinds, str) else kinds or ["object", "array"]
    starts = "{" * ("object" in kinds) + "[" * ("array" in kinds)
    if not starts:
        raise UnreadableSchemaError("its schema permits neither an object nor a list")
    return starts


def _check_keywords(schema: Any) -> list[str]:
    """Return the references of a schema.

    Raises:
        UnreadableSchemaError: a keyword cannot be scored in bounded time.
    """
    pending, count, references = [schema], 0, list[str]()
    while pending:
        value, count = pending.pop(), count + 1
        if count > MAX_VALUES:
            raise UnreadableSchemaError(f"its schema has more than {MAX_VALUES:,} values")
        if isinstance(value, list):
            pending += value
        for name, item in value.items() if isinstance(value, dict) else ():
            if name in _REFERENCES and isinstance(item, str):
                references.append(item)
                if not item.startswith("#"):
                    raise UnreadableSchemaError(f"{name} {item[:80]!r} is in another document")
            if name in _UNREAD:
                raise UnreadableSchemaError(f"{name} are not read; name the properties")
            if name == "pattern" and isinstance(item, str):
                _pattern(item)
            if name not in _DATA:
                pending.append(item)
    return references


@lru_cache(maxsize=1024)
def _pattern(text: str) -> tuple[re.Pattern[str], Any]:
    """Return a pattern of a schema and its tree."""
    try:
        tree = _parser.parse(text[: MAX_PATTERN + 1])
        if len(text) > MAX_PATTERN or tree.state.flags & ~re.UNICODE.value:
            raise UnreadableSchemaError(f"pattern {text[:80]!r} has flags, or is too long")
        _ways(tree, 1)
        return re.compile(text), tree
    except (re.error, RecursionError, OverflowError) as error:
        raise UnreadableSchemaError(f"pattern {text[:80]!r} cannot be read: {error}") from error


def _ways(items: Any, length: int) -> float:
    """Return a bound of the ways in which a pattern can go through a text: the leaves of the matcher's tree.

    A repetition without end of what has several ways (`(a+)+`) has exponentially many, and is refused; so is
    what is not regular.
    """
    total = 1.0
    for operation, argument in items:
        name = str(operation)
        if name in _REPEATS:
            least, most, body = argument
            ways = _ways(body, length)
            if ways > 1 and most is _parser.MAXREPEAT:
                raise UnreadableSchemaError("a pattern repeats a part that has several ways")
            most = min(most, least + length)
            is_small = ways == 1 or most * log10(ways) < 300
            total *= (most - least + 1) * ways**most if is_small else inf
        elif name == "SUBPATTERN" and not (argument[1] or argument[2]):
            total *= _ways(argument[3], length)
        elif name == "BRANCH":
            total *= sum(_ways(branch, length) for branch in argument[1])
        elif name not in _SIMPLE:
            raise UnreadableSchemaError(f"a pattern has {name.lower().replace('_', ' ')}")
    return total


def _validator(schema: Any, references: list[str]) -> Any:
    """Return the validator of a schema, whose keywords count their steps and which loads nothing."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        message = str(getattr(error, "message", "it is nested too deep"))
        raise UnreadableSchemaError(f"its schema is not valid: {message[:200]}") from error
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource("", resource).resolver()
    for reference in references:
        if isinstance(call_catching(resolver.lookup, reference), Exception):
            raise UnreadableSchemaError(f"{reference[:80]!r} in its schema leads nowhere")
    return _counting(kind)(schema, registry=Registry())


@lru_cache(maxsize=16)
def _counting(kind: Any) -> Any:
    """Return a validator class that counts its steps."""
    from jsonschema import validators

    extend: Any = validators.extend  # it has no annotations
    counted = {name: _count(name, keyword) for name, keyword in kind.VALIDATORS.items()}
    return extend(kind, {**counted, "pattern": _match_pattern})


def _count(name: str, keyword: Any) -> Any:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        sizes = [len(each) for each in (value, instance) if isinstance(each, (dict, list))]
        pairs = sizes[-1] ** 2 // 16 if name == "uniqueItems" and sizes else 0
        _take_steps(1 + sum(sizes) + pairs)
        _counter.depth += 1
        try:
            if (
                _counter.depth > MAX_NESTING
            ):  # before Python's own limit, at which the package panics
                raise TooManyStepsError
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            _counter.depth -= 1

    return counted


def _match_pattern(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str):
        pattern, tree = _pattern(value)
        size = len(instance) + len(value)
        starts = 1 if value.startswith("^") and "|" not in value else len(instance) + 1
        _take_steps(1 + starts * size * _ways(tree, len(instance)) / 100)
        if not pattern.search(instance):
            yield ValidationError("the pattern does not match")


def _take_steps(number: float) -> None:
    _counter.steps -= number
    if _counter.steps < 0:
        raise TooManyStepsError


def is_valid(value: Any, validator: Any) -> bool:
    """Return whether a value is valid; too many steps raise `TooManyStepsError`."""
    _counter.steps, _counter.depth = MAX_STEPS, 0
    return next(validator.iter_errors(value), None) is None


def _is_valid_gold(problem: Problem) -> bool:
    return call_catching(is_valid, problem.gold, problem.validator) is True
