"""What travels between processes: frames, and Python values as JSON text without classes.

A value is a flat table, so that a list of a hundred thousand nodes needs no recursion, and two
references to one list stay one. Numbers, text and None stand in the table as they are; a reference to
entry 3 is `[3]`. An instance of a subclass is written as the value of its built-in base: its own
methods, such as an `__eq__` that is always true, do not travel.
"""

import json
import os
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

_FRAME = struct.Struct(">II")
#: Bytes of the header or the body of a frame.
MAX_FRAME = 1 << 28
#: Characters of one value.
MAX_CHARACTERS = 1 << 22
#: Digits of a whole number that the grader reads, in quadratic time.
MAX_DIGITS = 4_300
#: Keys of a dictionary, or members of a set, that may have one hash.
MAX_EQUAL_HASHES = 64


def receive(source: Any) -> tuple[dict[str, Any], bytes]:
    """Read one frame, a JSON object and bytes, from a descriptor or a socket.

    Raises:
        EOFError: the other side has closed.
        ValueError: the bytes are not a frame.
    """
    header_size, body_size = _FRAME.unpack(_read(source, _FRAME.size))
    if header_size > MAX_FRAME or body_size > MAX_FRAME:
        raise ValueError("a frame is too long")
    return json.loads(_read(source, header_size)), _read(source, body_size)


def _read(source: Any, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        count = min(size - len(data), 1 << 20)
        part = os.read(source, count) if isinstance(source, int) else source.recv(count)
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def send(target: Any, header: Mapping[str, Any], body: bytes = b"") -> None:
    """Write one frame to a descriptor or a socket."""
    text = json.dumps(header).encode()
    data = _FRAME.pack(len(text), len(body)) + text + body
    if isinstance(target, int):
        write(target, data)
    else:
        target.sendall(data)


def write(descriptor: int, data: bytes) -> None:
    """Write all bytes to a descriptor."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class WireError(ValueError):
    """A value cannot be written, or a text is not one that `dump` wrote."""


def dump(value: Any, records: Mapping[str, type] | None = None, handle: Any = None) -> str:
    """Return a value as text.

    Args:
        value: the value.
        records: classes whose instances travel as their attributes, by name.
        handle: makes a number of an object of any other class, which then stays where it is.

    Raises:
        WireError: the value has an object of another class, or is too long.
    """
    table: list[Any] = []
    objects: list[Any] = []
    numbers: dict[int, int] = {}

    def reference(item: Any) -> Any:
        kind = type(item)
        if item is None or kind is bool or kind is str or kind is float:
            return item
        if kind is int and -(1 << 60) < item < 1 << 60:
            return item
        if id(item) not in numbers:
            numbers[id(item)] = len(objects)
            objects.append(item)  # which also keeps its id from being used again
        return [numbers[id(item)]]

    root = reference(value)
    position = 0
    while position < len(objects):
        if position > MAX_CHARACTERS // 4:
            raise WireError("the value is too long")
        table.append(_entry(objects[position], reference, records or {}, handle))
        position += 1
    text = json.dumps([root, table], separators=(",", ":"))
    if len(text) > MAX_CHARACTERS:
        raise WireError(f"the value has more than {MAX_CHARACTERS:,} characters")
    return text


def _entry(
    item: Any, reference: Callable[[Any], Any], records: Mapping[str, type], handle: Any
) -> list[Any]:
    if type(item).__module__ == "numpy" and hasattr(item, "tolist"):
        item = item.tolist()
    name = type(item).__name__
    if name in records and hasattr(item, "__dict__"):
        return ["r", name, [[key, reference(each)] for key, each in item.__dict__.items()]]
    for kind, write_item in _PLAIN:
        if isinstance(item, kind):
            return write_item(item)
    for kind, mark in _SEQUENCES.items():
        if isinstance(item, kind):
            return [mark, [reference(each) for each in kind.__iter__(item)]]
    if isinstance(item, dict):
        return ["d", [[reference(key), reference(each)] for key, each in dict.items(item)]]
    if handle is not None:
        return ["h", handle(item)]
    raise WireError(f"a value of type {name[:80]} is not data")


#: How values without others in them are written; the methods are those of the built-in types.
_PLAIN: tuple[tuple[type | tuple[type, ...], Callable[[Any], list[Any]]], ...] = (
    ((bool, type(None)), lambda item: ["v", item]),
    (int, lambda item: ["x", hex(int.__index__(item))]),
    (float, lambda item: ["v", float.__float__(item)]),
    (str, lambda item: ["v", str.__str__(item)]),
    ((bytes, bytearray), lambda item: ["b", bytes(item).hex()]),
    (complex, lambda item: ["c", item.real, item.imag]),
)
_SEQUENCES: dict[Any, str] = {list: "l", tuple: "t", set: "s", frozenset: "z"}


def load(text: str, records: Mapping[str, type] | None = None, proxy: Any = None) -> Any:
    """Return the value of a text; `proxy` makes an object of the number of a handle.

    Raises:
        WireError: the text was not written by `dump`.
    """
    try:
        root, table = json.loads(text)
        return _Loader(table, records or {}, proxy).value(root)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, AttributeError) as error:
        raise WireError(f"not a value: {type(error).__name__}") from None


class _Loader:
    def __init__(self, table: list[Any], records: Mapping[str, type], proxy: Any) -> None:
        self.table, self.records, self.proxy = table, records, proxy
        self.shells: list[Any] = [self._shell(entry) for entry in table]
        for entry, shell in zip(table, self.shells, strict=True):
            self._fill(entry, shell)

    def value(self, item: Any) -> Any:
        if type(item) is not list:
            return item
        (number,) = item
        entry = self.table[number]
        if entry[0] in ("t", "z") and self.shells[number] is None:
            kind = tuple if entry[0] == "t" else frozenset
            self.shells[number] = kind(map(self.value, entry[1]))
        return self.shells[number]

    def _shell(self, entry: list[Any]) -> Any:
        """Return the value of an entry, empty if others belong into it; None for a later tuple."""
        match entry:
            case ["v", value]:
                return value
            case ["x", str(text)]:
                return int(text, 16)
            case ["b", str(text)]:
                return bytes.fromhex(text)
            case ["c", float(real), float(imaginary)]:
                return complex(real, imaginary)
            case ["h", int(number)] if self.proxy is not None:
                return self.proxy(number)
            case ["r", name, list()]:
                return object.__new__(self.records[name])
            case [("l" | "d" | "s") as mark, list()]:
                return {"l": list, "d": dict, "s": set}[mark]()
            case [("t" | "z"), list()]:
                return None
        raise WireError("not a value: unknown entry")

    def _fill(self, entry: list[Any], shell: Any) -> None:
        match entry[0]:
            case "l":
                shell.extend(map(self.value, entry[1]))
            case "s":
                shell.update(map(self.value, entry[1]))
            case "d":
                shell.update((self.value(key), self.value(each)) for key, each in entry[1])
            case "r":
                shell.__dict__.update((key, self.value(each)) for key, each in entry[2])


def dump_tree(value: Any) -> str:
    """Return a value as text that `load_tree` reads.

    Raises:
        WireError: the value has an object of a class that is not built in.
        RecursionError: it is nested too deeply.
    """
    return json.dumps(_tree(load(dump(value))), separators=(",", ":"))


def _tree(item: Any) -> Any:
    if isinstance(item, (bytes, complex)):
        return {"b": item.hex()} if isinstance(item, bytes) else {"c": [item.real, item.imag]}
    if isinstance(item, dict):
        return {"d": [[_tree(key), _tree(each)] for key, each in item.items()]}
    if isinstance(item, (list, tuple, set, frozenset)):
        items = [_tree(each) for each in item]
        return items if type(item) is list else {"t" if type(item) is tuple else "s": items}
    return item


def load_tree(text: str) -> Any:
    """Return the value of a text that a program may have forged.

    Unlike `load`, it takes time and memory in proportion to the text: a list cannot stand at two places,
    whose hash would take exponential time, and hashes cannot all collide.

    Raises:
        WireError: the text was not written by `dump_tree`.
    """
    try:
        return json.loads(text, object_hook=_of_tree, parse_int=_integer)
    except (ValueError, TypeError, RecursionError) as error:
        raise WireError(f"not a value: {type(error).__name__}") from None


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise WireError("the number is too long")
    return int(digits)


def _of_tree(entry: dict[str, Any]) -> Any:
    match entry:
        case {"t": list(items)}:
            return tuple(items)
        case {"s": list(items)}:
            return frozenset(spread(items))
        case {"d": list(pairs)}:
            return dict(
                zip(spread([key for key, _ in pairs]), (each for _, each in pairs), strict=True)
            )
        case {"b": str(text)}:
            return bytes.fromhex(text)
        case {"c": [float(real), float(imaginary)]}:
            return complex(real, imaginary)
    raise WireError("unknown entry")


def spread(items: list[Any]) -> list[Any]:
    """Return items whose hashes do not collide, so that a set of them takes linear time."""
    counts = Counter(map(hash, items))
    if len(counts) < len(items) and max(counts.values()) > MAX_EQUAL_HASHES:
        raise WireError("hashes collide")
    return items
