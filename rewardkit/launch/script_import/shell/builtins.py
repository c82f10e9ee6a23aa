"""Commands that the importer knows: those of bash itself, and a few that only change text.

Each takes its arguments and the scope, changes the scope as bash would, and returns the exit status,
None where only a run can tell. No program is started and no file is read or written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice

from rewardkit.launch.script_import.shell.conditions import evaluate_test
from rewardkit.launch.script_import.shell.expansions import compute
from rewardkit.launch.script_import.shell.scope import (
    SIGNS,
    ShellScope,
    is_unknown,
    plain,
    unsigned,
)

#: Numbers that `seq` prints.
MAX_NUMBERS = 10_000

Arguments = list[str]
Builtin = Callable[[Arguments, ShellScope], int | None]

#: Commands that succeed wherever the script works, and change nothing that is read here.
ORDINARY = frozenset(
    """
    : alias cat chmod chown clear conda cp date deactivate echo install ln ls mkdir module mv
    printf ray rm rmdir sleep sync tee touch trap ulimit umask wait
    """.split()
)

_PRINTF = re.compile(r"%(?:(%)|([sdi]))|\\([nt\\])")


def cd(arguments: Arguments, scope: ShellScope) -> int:
    """Change the folder; its path becomes `$PWD`."""
    words = [word for word in arguments if word not in {"--", "-P", "-L"}]
    target = words[0] if words else (scope.variables.get("HOME") or [""])[0]
    here = (scope.variables.get("PWD") or [""])[0]
    if target == "-" or is_unknown(target) or (not target.startswith("/") and is_unknown(here)):
        target = scope.unknown("$PWD", "PWD")
    else:
        target = _absolute(target, here)
    scope.variables["OLDPWD"], scope.variables["PWD"] = [here], [target]
    return 0


def _absolute(path: str, here: str) -> str:
    """Return a path from the root, without `..`; it keeps the sign of the folder it begins with."""
    if path[:1] in SIGNS:
        return path[0] + posixpath.normpath(path[1:])
    if path.startswith("/"):
        return posixpath.normpath(path)
    sign = here[:1] if here[:1] in SIGNS else ""
    return sign + posixpath.normpath(posixpath.join(unsigned(here), path))


def pushd(arguments: Arguments, scope: ShellScope) -> int:
    """Change the folder and remember the one before."""
    stack = scope.variables.get("DIRSTACK", [])
    scope.variables["DIRSTACK"] = [*stack, (scope.variables.get("PWD") or [""])[0]]
    return cd(arguments, scope)


def popd(_arguments: Arguments, scope: ShellScope) -> int:
    """Change back to the folder before the last `pushd`."""
    *stack, target = scope.variables.get("DIRSTACK") or [""]
    scope.variables["DIRSTACK"] = stack
    return cd([target], scope) if target else 1


def pwd(_arguments: Arguments, scope: ShellScope) -> int:
    """Print the folder."""
    return _print((scope.variables.get("PWD") or [""])[0] + "\n", scope)


def echo(arguments: Arguments, scope: ShellScope) -> int:
    """Print the arguments."""
    end = "\n"
    while arguments and re.fullmatch("-[neE]+", arguments[0]):
        end = "" if "n" in arguments[0] else end
        arguments = arguments[1:]
    return _print(" ".join(arguments) + end, scope)


def _print(text: str, scope: ShellScope) -> int:
    if scope.output is not None:
        scope.output += scope.count([text])
    return 0


def printf(arguments: Arguments, scope: ShellScope) -> int | None:
    """Print the arguments in a format of `%s` and `%d`; other formats are not known."""
    if arguments[:1] == ["-v"] or not arguments:
        for name in arguments[1:2]:
            scope.set(name, [scope.unknown(f"${name}", name)])
        return 0
    if re.search(r"%(?![sdi%])|\\(?![nt\\])", arguments[0]):
        return _print(scope.unknown(f"$(printf {arguments[0]} ...)"), scope)
    needs_number = re.search("%[di]", arguments[0]) and "%s" not in arguments[0]
    if needs_number and not all(re.fullmatch(r"-?\d+", word) for word in arguments[1:]):
        return _print(scope.unknown(f"$(printf {' '.join(arguments)})"), scope)
    return _print("".join(_formatted(arguments[0], arguments[1:])), scope)


def _formatted(template: str, values: Arguments) -> Iterator[str]:
    """Yield the pieces of a format, which is used again while values are left."""
    rest = list(values)
    for _ in range(len(values) + 1):
        before = len(rest)

        def piece(match: re.Match[str]) -> str:
            if match[3]:
                return {"n": "\n", "t": "\t", "\\": "\\"}[match[3]]
            if match[1]:
                return "%"
            return rest.pop(0) if rest else "" if match[2] == "s" else "0"

        yield _PRINTF.sub(piece, template)
        if not rest or len(rest) == before:
            return


def seq(arguments: Arguments, scope: ShellScope) -> int | None:
    """Print numbers, one on each line."""
    if (
        not all(re.fullmatch(r"-?\d{1,9}", word) for word in arguments)
        or not 1 <= len(arguments) <= 3
    ):
        return _print(scope.unknown(f"$(seq {' '.join(arguments)})"), scope)
    numbers = [int(word) for word in arguments]
    first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, numbers[-1]), 3: tuple(numbers)}[
        len(numbers)
    ]
    if step == 0:
        return 1
    series = islice(range(first, last + (1 if step > 0 else -1), step), MAX_NUMBERS)
    return _print("".join(f"{number}\n" for number in series), scope)


def basename(arguments: Arguments, scope: ShellScope) -> int:
    """Print the last part of a path."""
    words = [word for word in arguments if word not in {"--", "-a"}]
    if not words or is_unknown("".join(words)):
        return _print(scope.unknown(f"$(basename {' '.join(words)})"), scope)
    name = posixpath.basename(unsigned(words[0]).rstrip("/")) or "/"
    suffix = words[1] if len(words) > 1 else ""
    return _print((name.removesuffix(suffix) or name) + "\n", scope)


def dirname(arguments: Arguments, scope: ShellScope) -> int:
    """Print a path without its last part."""
    words = [word for word in arguments if word != "--"]
    if not words or is_unknown(words[0]):
        return _print(scope.unknown(f"$(dirname {' '.join(words)})"), scope)
    sign = words[0][:1] if words[0][:1] in SIGNS else ""
    return _print(sign + (posixpath.dirname(unsigned(words[0]).rstrip("/")) or ".") + "\n", scope)


def realpath(arguments: Arguments, scope: ShellScope) -> int:
    """Print a path from the root; links are not followed."""
    words = [word for word in arguments if not word.startswith("-")]
    here = (scope.variables.get("PWD") or [""])[0]
    if len(words) != 1 or is_unknown(words[0] + here):
        return _print(scope.unknown(f"$(realpath {' '.join(words)})"), scope)
    return _print(_absolute(words[0], here) + "\n", scope)


def tr(arguments: Arguments, scope: ShellScope) -> int | None:
    """Translate letters one by one, delete them with `-d`; classes and other options are unknown."""
    text = scope.stdin() if scope.stdin else ""
    classes = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "A-Z": "A-Z", "a-z": "a-z"}
    words = [classes.get(word, word) for word in arguments]
    ranges = {"A-Z": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "a-z": "abcdefghijklmnopqrstuvwxyz"}
    one, other = ([*(ranges.get(word, word) for word in words), "", ""])[:2]
    is_plain = not any(re.search(r"[\[\]\\]|.-.", word) for word in (one, other) if word != "-d")
    if is_unknown(text) or not is_plain or not scope.stdin or len(words) != 2:
        return _print(scope.unknown(f"$(tr {' '.join(arguments)})"), scope)
    if one == "-d":
        return _print("".join(char for char in text if char not in other), scope)
    if len(one) != len(other) and len(other) != 1:
        return _print(scope.unknown(f"$(tr {' '.join(arguments)})"), scope)
    table = dict(zip(one, other if len(other) > 1 else other * len(one), strict=True))
    return _print("".join(table.get(char, char) for char in text), scope)


def cat(arguments: Arguments, scope: ShellScope) -> int | None:
    """Print what is read from a here-document or a pipe; a file is not known."""
    if scope.output is None:
        return 0
    if arguments not in ([], ["-"]) or scope.stdin is None:
        return _print(scope.unknown(f"$(cat {' '.join(arguments)})"), scope)
    return _print(scope.stdin(), scope)


def shift(arguments: Arguments, scope: ShellScope) -> int:
    """Drop the first arguments."""
    count = int(arguments[0]) if arguments and arguments[0].isdigit() else 1
    if count > len(scope.arguments):
        return 1
    del scope.arguments[:count]
    return 0


def set_(arguments: Arguments, scope: ShellScope) -> int:
    """Set the arguments (`set -- a b`), and the options `-a` and `-e`."""
    words = list(arguments)
    while words and re.fullmatch("[-+].*", words[0]) and words[0] not in {"--", "-"}:
        option = words.pop(0)
        named = words.pop(0) if option.endswith("o") and words else ""
        if "a" in option or named == "allexport":
            scope.exports_all = option[0] == "-"
        if "e" in option or named == "errexit":
            scope.exits_on_error = option[0] == "-"
    if words:
        scope.arguments, scope.knows_arguments = words[words[0] in {"--", "-"} :], True
    return 0


def read(arguments: Arguments, scope: ShellScope) -> int | None:
    """Set variables from the input, which is not known."""
    for name in arguments:
        if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            scope.set(name, [scope.unknown(f"${name}", name)])
    scope.blame(scope.unknown("read"))
    return None


def let(arguments: Arguments, scope: ShellScope) -> int | None:
    """Compute arithmetic expressions."""
    value: int | None = 0
    for text in arguments:
        value = compute(text, scope)
    return None if value is None else int(value == 0)


def test(arguments: Arguments, scope: ShellScope) -> int | None:
    """Evaluate a test."""
    truth = evaluate_test(arguments, scope)
    return None if truth is None else int(not truth)


def python(arguments: Arguments, scope: ShellScope) -> int | None:
    """Answer `python3 -c 'import name'`: whether this machine has the package; it is not imported."""
    code = arguments[1] if arguments[:1] == ["-c"] and len(arguments) == 2 else ""
    match = re.fullmatch(r"\s*import ([A-Za-z_]\w*)\s*;?\s*", code, re.ASCII)
    if match is None:
        return ordinary(arguments, scope, name="python3")
    try:
        has_it = find_spec(match[1]) is not None
    except ValueError:  # raised for __main__, which every program has
        has_it = True
    text = f"asks whether {match[1]} can be imported, and on this machine it "
    text += (
        "can; the import goes on with that." if has_it else "cannot; the import goes on with that."
    )
    scope.record.problems.add(scope.line, text, breaks=False)
    return int(not has_it)


def ordinary(arguments: Arguments, scope: ShellScope, *, name: str) -> int | None:
    """Return the status of a command that is not known; what it prints is not known either."""
    mark = scope.unknown(plain(f"$({' '.join([name, *arguments])[:200]})", scope))
    if scope.output is not None:
        scope.output.append(mark)
    if name in ORDINARY:
        return 0
    scope.blame(mark)
    return None


BUILTINS: dict[str, Builtin] = {
    "[": lambda arguments, scope: test(arguments[:-1], scope),
    "basename": basename,
    "cat": cat,
    "cd": cd,
    "dirname": dirname,
    "echo": echo,
    "false": lambda _arguments, _scope: 1,
    "let": let,
    "popd": popd,
    "printf": printf,
    "pushd": pushd,
    "pwd": pwd,
    "python": python,
    "python3": python,
    "read": read,
    "readlink": realpath,
    "realpath": realpath,
    "seq": seq,
    "set": set_,
    "shift": shift,
    "test": test,
    "tr": tr,
    "true": lambda _arguments, _scope: 0,
}
