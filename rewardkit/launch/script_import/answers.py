"""What a script is told when it asks something that only a run can tell, and what it starts."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from rewardkit.errors import DataError
from rewardkit.launch.script_import.bash_text import BashText
from rewardkit.launch.script_import.trainer_command import find_module

#: Answers of one test: a loop that waits for something ends.
MAX_SAME_ANSWERS = 200

#: Commands that succeed wherever a script works, and those of them that print nothing.
_ORDINARY = frozenset(
    """alias cd chmod chown clear conda cp deactivate export install ln mkdir module mv rm rmdir shopt sleep
    sync tee touch trap ulimit umask unset wait disown""".split()
)
_SILENT = frozenset("mkdir module rm sleep trap ulimit umask wait".split())
_ALPHABET = {"[:upper:]": "A-Z", "[:lower:]": "a-z"}


class Answers:
    """Answers one run of a script, in bash.

    Args:
        token: the start of every mark.
        forced: variables whose assignments are replaced, with the values they keep.
        flips: tests whose first answer is the other one, as they stand in `tests`.
    """

    def __init__(
        self, token: str, forced: dict[str, str], flips: Sequence[Sequence[Any]] = ()
    ) -> None:
        self.token, self.script = token, BashText(token, forced)
        self.flips = {tuple(flip) for flip in flips}
        self.calls: list[dict[str, Any]] = []
        self.tests: dict[tuple[Any, ...], None] = {}
        self.notes: list[tuple[int, str]] = []
        self.exits: list[int] = []
        self.is_done = self.is_ended = False
        self.hits: list[str] = []
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def result(self) -> dict[str, Any]:
        """Return what the run called and asked, in JSON."""
        return {
            "calls": self.calls,
            "tests": list(self.tests),
            "notes": self.notes,
            "exits": [] if self.is_ended else self.exits or [1],
            "marks": self.script.substitutions,
            "unclosed": self.script.unclosed,
        }

    def answer(self, fields: Sequence[str]) -> str | None:
        """Return the bash that answers a question; None for a message that waits for nothing."""
        kind, *rest = fields
        method: Callable[..., str | None] | None = getattr(self, f"_answer_{kind}", None)
        if method is None:
            return None
        try:
            return method(*rest)
        except DataError:
            raise
        except (IndexError, TypeError, ValueError, OverflowError):
            raise DataError("writes to the descriptors of the import.") from None

    def _answer_hit(self, text: str = "", *_: str) -> None:
        self.hits.append(text)

    def _answer_unset(self, line: str, name: str, *_: str) -> None:
        self.hits.append(self.script.mark(f"${name}", _number(line), name))

    def _answer_exit(self, line: str, *_: str) -> None:
        self.exits.append(_number(line))

    _answer_failed = _answer_exit

    def _answer_end(self, *_: str) -> None:
        self.is_ended = True

    def _answer_eval(self, line: str, text: str = "", *_: str) -> str:
        return self.script.rewrite(text, _number(line))

    def _answer_unset_number(self, line: str, name: str, text: str, *_: str) -> str:
        return f"builtin printf %s {self.script.mark(f'$(({text}))', _number(line), name)}"

    def _answer_case(self, line: str, text: str = "", *_: str) -> str:
        raise DataError(self._undecided(_number(line), text))

    def _undecided(self, line: int, text: str) -> str:
        return json_test(line, self.marks_in(text))

    def _answer_for(self, line: str, *words: str) -> str:
        if self.token not in " ".join(words):
            return ":"
        return f"builtin return {self._decide('for', _number(line), ' '.join(words), 0)}"

    def _answer_decide(self, line: str, kind: str, status: str, *_: str) -> str:
        hits, self.hits = " ".join(self.hits), []
        if not hits:
            return f"builtin return {_number(status)}"
        return f"builtin return {self._decide(kind, _number(line), hits, min(_number(status), 1))}"

    def _answer_test(self, line: str, *words: str) -> str:
        listed = list(words)
        for i, word in enumerate(listed[1:], 1):
            if listed[i - 1] in {"-z", "-n"} and self._is_unset(word):
                listed[i] = ""
        text = " ".join(listed)
        is_file = any(re.fullmatch("-[abcdefghkprsuwxGLNOS]", word) for word in listed[:-1])
        if self.token in text or (is_file and "-a" not in listed[1:-1]):
            return f"builtin return {self._decide('[', _number(line), text, 1)}"
        return f"builtin [ {shlex.join(listed)} ]"

    def _is_unset(self, word: str) -> bool:
        marks = self.marks_in(word)
        return (
            bool(marks)
            and all(m[0].startswith("$") and m[0][1:2] != "(" for m in marks)
            and not re.sub(rf"{self.token}\d+_", "", word)
        )

    def marks_in(self, text: str) -> list[tuple[str, int, str]]:
        """Return what the marks of a text stand for."""
        numbers = re.findall(rf"(?i){self.token}(\d{{1,7}})_", text)
        known = self.script.substitutions
        return [known[int(n)] for n in numbers if int(n) < len(known)]

    def _decide(self, kind: str, line: int, text: str, status: int) -> int:
        """Return the exit status of something that only a run can tell."""
        test = (kind, line, *self._shown(text))
        self.tests.setdefault(test)
        self.counts[test] += 1
        if self.counts[test] > MAX_SAME_ANSWERS:
            raise DataError(f"waits in line {line} for something that does not come here.")
        is_other = test in self.flips and self.counts[test] == 1
        return 1 - status if is_other else status

    def _shown(self, text: str) -> tuple[str, str]:
        """Return what a test depends on, and the variables that would decide it."""
        marks = self.marks_in(text)
        if not marks:
            return text[:200], ""
        return marks[0][0][:200], " ".join(dict.fromkeys(m[2] for m in marks if m[2]))

    def _answer_command(
        self, line: str, mark: str, here: str, given: str, state: str, *words: str
    ) -> str:
        program, arguments = posixpath.basename(words[0]), list(words[1:])
        number = _number(line)
        known = getattr(self, f"_run_{program}", None)
        if known is not None and self.token not in f"{' '.join(arguments)}{given}":
            printed = known(arguments, given, here)
            if printed is not None:
                return f"builtin printf %s {shlex.quote(printed)}"
        if program in {"bash", "sh", "zsh", "dash"}:
            options = [i for i, word in enumerate(arguments) if re.fullmatch("-[a-z]*c", word)]
            text = "".join(arguments[options[0] + 1 : options[0] + 2]) if options else given
            if options or not arguments:
                return f"( {self.script.rewrite(text, number)}\n)"
        if program == "xargs" and self.token not in given:
            return f"__x {shlex.join([*arguments, *given.split()])}"
        if program == "cat" and arguments in ([], ["-"]):
            return f"builtin printf %s {shlex.quote(given)}"
        if find_module(words):
            self.counts["trainer", words] += 1
            self.is_done = self.counts["trainer", words] >= 3
        self.calls.append({"line": number, "words": words, "state": state, "mark": mark})
        status = self._probe(program, arguments, number)
        if status is not None:
            return f"builtin return {status}"
        printed = self._printed(program, mark, words, number)
        is_known = program in _ORDINARY or find_module(words)
        status = 0 if is_known else self._decide("command", number, " ".join(words), 0)
        return f"builtin printf %s {shlex.quote(printed)}; builtin return {status}"

    def _printed(self, program: str, mark: str, words: Sequence[str], line: int) -> str:
        if program in _SILENT:
            return ""
        if mark.isdigit():
            return f"{self.token}{mark}_"
        return self.script.mark(shlex.join(words)[:300], line)

    def _probe(self, program: str, arguments: Sequence[str], line: int) -> int | None:
        """Return the status of `python3 -c 'import NAME'` on this machine; None for anything else."""
        match = re.fullmatch(r"\s*import ([A-Za-z_]\w*)[\w., ]*;?\s*", " ".join(arguments[1:]))
        if not re.match("python", program) or arguments[:1] != ["-c"] or match is None:
            return None
        try:
            is_here = match[1] == "__main__" or find_spec(match[1]) is not None
        except (ValueError, ImportError):
            is_here = True
        can = "it can" if is_here else "it cannot"
        note = (
            f"asks whether {match[1]} can be imported, and on this machine {can}; give the variable "
            "that it sets with --env if the run's machine differs."
        )
        self.notes.append((line, note))
        return 0 if is_here else 1

    def _answer_cd(self, here: str, *words: str) -> str:
        targets = [word for word in words if word not in {"--", "-P", "-L"}]
        target = targets[0] if targets else "$HOME"
        if target == "$HOME":
            return "PWD=$HOME"
        if target == "-" or self.token in target:
            path = self.script.mark("$PWD", 1, "PWD")
        else:
            path = absolute(target, here)
        return f"PWD={shlex.quote(path)}"

    def _run_basename(self, words: list[str], _given: str, _here: str) -> str | None:
        names = [word for word in words if word not in {"--", "-a"}]
        if not names:
            return None
        name = posixpath.basename(names[0].rstrip("/")) or "/"
        return (name.removesuffix("".join(names[1:2])) or name) + "\n"

    def _run_dirname(self, words: list[str], _given: str, _here: str) -> str | None:
        names = [word for word in words if word != "--"]
        return (posixpath.dirname(names[0].rstrip("/")) or ".") + "\n" if names else None

    def _run_realpath(self, words: list[str], _given: str, here: str) -> str | None:
        names = [word for word in words if not word.startswith("-")]
        return absolute(names[0], here) + "\n" if len(names) == 1 else None

    _run_readlink = _run_realpath

    def _run_seq(self, words: list[str], _given: str, _here: str) -> str | None:
        if not 1 <= len(words) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", w) for w in words):
            return None
        numbers = [int(word) for word in words]
        step = numbers[1] if len(numbers) == 3 else 1
        first, last = (1 if len(numbers) == 1 else numbers[0]), numbers[-1]
        series = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
        return "".join(f"{number}\n" for number in series[:10_000])

    def _run_tr(self, words: list[str], given: str, _here: str) -> str | None:
        if len(words) != 2:
            return None
        sets = [_ALPHABET.get(word, word) for word in words]
        one, other = (
            re.sub(r"(\w)-(\w)", _letters, word) if word != "-d" else word for word in sets
        )
        if any(sign in one + other for sign in "[]\\"):
            return None
        if one == "-d":
            return "".join(char for char in given if char not in other)
        if len(one) != len(other) and len(other) != 1:
            return None
        return given.translate(str.maketrans(one, other if len(other) > 1 else other * len(one)))


def _letters(match: re.Match[str]) -> str:
    return "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,7}", text) else 1


def absolute(path: str, here: str) -> str:
    """Return a path from the root, without `..`."""
    return posixpath.normpath(posixpath.join(here, path))


def json_test(line: int, marks: Sequence[tuple[str, int, str]]) -> str:
    """Return the message about a test that ends an import."""
    text, _, name = marks[0] if marks else ("a case", line, "")
    hint = f" Pass --env {name}=VALUE." if name else ""
    return f"depends on the test of line {line} ({text[:80]}), which only a run can tell.{hint}"
