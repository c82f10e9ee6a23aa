"""Bash reads a script, with nothing to run, once for each answer that only a run can give.

Where a test or a command asks what only a run can tell, bash reads the script once more for the other
answer. What the trainer gets must be the same, else the import is refused.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit.errors import DataError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.launch.script_import.trainer_command import (
    OVERRIDE,
    find_module,
    launcher_words,
    module_name,
    other_script,
)

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds for all runs of a script.
MAX_TOTAL_SECONDS = 40

#: Tests whose other answer is tried, of which this many may change a variable, and seconds for a run.
MAX_TESTS, MAX_CHANGES, MAX_SECONDS = 100, 6, 20

#: Names that differ between two runs of the same script.
_OWN = re.compile(
    r"__\w*|BASH\w*|_|FUNCNAME|LINENO|PIPESTATUS|OLDPWD|PWD|PPID|SHLVL|OPTIND|GROUPS|E?UID"
)
_DECLARED = re.compile(r"^declare -(\S+) (\w+)=?", re.MULTILINE)

Test = tuple[Any, ...]


class Unknown(NamedTuple):
    """What only a run of the script can tell: its text, its line, and the variables to give."""

    text: str
    line: int
    names: tuple[str, ...] = ()


class Trainer(NamedTuple):
    """A command that starts verl: its module, arguments, line, launcher, and the shell's variables."""

    module: str
    arguments: tuple[str, ...]
    line: int
    launcher: tuple[str, ...]
    state: str


@dataclass(kw_only=True)
class ScriptRun:
    """What a script calls, with one answer for each test that only a run can tell."""

    tests: list[Test]
    notes: list[tuple[int, str]]
    exits: list[int]
    unclosed: list[int]
    marks: list[tuple[str, int, str]]
    trainers: list[Trainer] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    scripts: list[tuple[str, int]] = field(default_factory=list)


class _UndecidedError(DataError):
    """What the trainer gets depends on a test."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        super().__init__(text)
        self.names = names


class ScriptRuns:
    """The runs of one script.

    Args:
        text: the script.
        where: its file.
        env: variables that the script is started with.
        arguments: the arguments that the script is started with.
    """

    def __init__(self, text: str, where: str, env: Mapping[str, str], arguments: list[str]) -> None:
        self.text, self.where, self.env, self.arguments = text, where, env, arguments
        name = secrets.token_hex(3)
        self.token, self.home, self.start = f"__rk{name}x", f"/__home{name}", f"/__pwd{name}"
        self.source = f"/__src{name}"
        self.forced: dict[str, str] = {}
        bash = shutil.which("bash")
        if bash is None:
            raise UsageError("Reading launch scripts needs bash 4.4 or newer on the PATH.")
        self.bash, self.end = bash, monotonic() + MAX_TOTAL_SECONDS
        self.process = ChildProcess("rewardkit.launch.script_import.bash_child")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()

    def explore(self) -> tuple[ScriptRun, tuple[str, int] | None]:
        """Return what the script starts, and a test that may also end without it.

        Raises:
            DataError: it depends on a test that only a run can tell, or takes too much work.
        """
        while True:
            try:
                return self._explore()
            except _UndecidedError as error:
                given = {n: self.env[n] for n in error.names if n in self.env}
                if not given.keys() - self.forced.keys():
                    raise
                self.forced |= given

    def _explore(  # noqa: C901 - one loop over the tests
        self,
    ) -> tuple[ScriptRun, tuple[str, int] | None]:
        first = self._run(())
        base, partial = first, None
        seen: set[Test] = set()
        changes: list[tuple[Test, ...]] = []
        queue: list[tuple[tuple[Test, ...], ScriptRun]] = [((), first)]
        while queue:
            flips, run = queue.pop(0)
            for test in run.tests:
                if test in seen:
                    continue
                seen.add(test)
                if len(seen) > MAX_TESTS:
                    raise DataError(f"more than {MAX_TESTS} tests that only a run can tell.")
                other = self._run((*flips, test))
                if other is None:
                    continue
                if bool(run.trainers) != bool(other.trainers) and test[0] in {"[", "[[", "(("}:
                    partial = partial or (test[2], test[1])
                if other.trainers and base.trainers:
                    known = run if run.trainers else base
                    self._compare(known, other, test)
                    changes += [(*flips, test)] if self._changed(known, other) else []
                elif other.trainers:
                    base = other
                queue.append(((*flips, test), other))
        if len(changes) > MAX_CHANGES:
            raise DataError(
                f"more than {MAX_CHANGES} tests that only a run can tell set variables."
            )
        for one, two in combinations(changes, 2):
            both = self._run((*one, *two))
            if both and both.trainers:
                self._compare(base, both, two[-1])
        for trainer in base.trainers:
            self._force_given(base, trainer)
        return base, partial

    def _force_given(self, run: ScriptRun, trainer: Trainer) -> None:
        """Let a variable of --env stand for the command that the script sets it from."""
        for text in trainer.arguments:
            names = [name for unknown in self.unknowns(text, run) for name in unknown.names]
            if any(name in self.env and name not in self.forced for name in names):
                raise _UndecidedError("", names)

    def _compare(self, run: ScriptRun, other: ScriptRun, test: Test) -> None:
        """Refuse a script whose trainer gets something else where a test is different."""
        ours, theirs = (
            [(t.module, *(self.plain(a, r) for a in t.arguments)) for t in r.trainers]
            for r in (run, other)
        )
        if ours == theirs:
            return
        _, line, text, listed = test
        names = listed.split() or self._changed(run, other)
        if len(ours) != len(theirs) or [t.line for t in run.trainers] != [
            t.line for t in other.trainers
        ]:
            what = "which command starts the run"
        else:
            words = [
                w
                for one, two in zip(ours, theirs, strict=True)
                for w in (*one, *two)
                if (w in one) != (w in two)
            ]
            key = words[0].partition("=")[0].lstrip("+~")
            what = f"{key} (line {self._line(key, run)})"
        hint = " ".join(f"--env {name}=VALUE" for name in names[:3])
        raise _UndecidedError(
            f"{what} depends on the test of line {line} ({text[:80]}), which only a run can tell."
            + (f" Pass {hint}." if hint else ""),
            names,
        )

    def _line(self, key: str, run: ScriptRun) -> int:
        place = self.text.find(f"{key}=")
        return self.text.count("\n", 0, place) + 1 if place >= 0 else run.trainers[0].line

    def _changed(self, run: ScriptRun, other: ScriptRun) -> list[str]:
        """Return the variables that differ between two runs, where they start the trainer."""
        one, two = (
            {self.plain(item, r) for item in r.trainers[0].state.split("\n")} for r in (run, other)
        )
        names = [m[2] for item in sorted(one ^ two) if (m := _DECLARED.match(item))]
        return [name for name in dict.fromkeys(names) if not _OWN.fullmatch(name)]

    def _run(self, flips: Sequence[Test]) -> Any:
        """Return what the script calls; None if the other answer of a test lets it wait for ever."""
        variables = {
            name: value
            for name, value in self.env.items()
            if not re.match("BASH|LD_|(?:ENV|IFS|PATH|PS4|PWD|SHELLOPTS)$", name)
        }
        start = self.env.get("PWD", f"{self.start}{Path.cwd()}")
        request = {
            "bash": self.bash,
            "text": self.text,
            "environment": {"HOME": self.home, "LC_ALL": "C.UTF-8", **variables},
            "arguments": [
                f"{self.source}{Path(self.where).absolute()}",
                self.token,
                start,
                *self.arguments,
            ],
            "answers": {"token": self.token, "forced": self.forced, "flips": list(flips)},
        }
        seconds = min(MAX_SECONDS, self.end - monotonic())
        try:
            reply = self.process.exchange(request, max(0.0, seconds))
        except ChildTimeoutError:
            raise DataError(f"takes longer than {MAX_TOTAL_SECONDS} seconds.") from None
        except ChildCrashError as error:
            raise DataError(f"bash cannot read it: {error}.") from None
        if "refused" in reply:
            if flips and reply["refused"].startswith("waits"):
                return None
            raise _UndecidedError(reply["refused"], reply.get("names", []))
        calls = reply.pop("calls")
        run = ScriptRun(**reply | {"tests": [tuple(test) for test in reply["tests"]]})
        for call in calls:
            self._sort(call, run)
        return run

    def _sort(self, call: Mapping[str, Any], run: ScriptRun) -> None:
        """Add a command to a run, if it starts a trainer or has settings."""
        words, line, state = call["words"], call["line"], call["state"]
        if place := find_module(words):
            launcher = launcher_words(words[:place])
            arguments = tuple(words[place + 1 :])
            run.trainers.append(
                Trainer(module_name(words[place]), arguments, line, launcher, state)
            )
        elif OVERRIDE.match(words[0]):
            engine = self.variables(state).get("model_engine")
            if engine and not run.trainers:
                words = [f"model_engine={engine[1]}", *words]
            if run.trainers:
                last = run.trainers[-1]
                if last.module:
                    run.below.append(line)
                run.trainers[-1] = last._replace(arguments=(*last.arguments, *words))
            else:
                run.trainers.append(Trainer("", tuple(words), line, (), state))
        elif script := other_script(words):
            run.scripts.append((script, line))

    def variables(self, state: str) -> dict[str, tuple[bool, str]]:
        """Return the variables of the shell, and whether they are exported."""
        variables: dict[str, tuple[bool, str]] = {}
        for match in re.finditer(
            r'^declare -(\S+) (\w+)="((?:[^"\\]|\\.)*)"$', state, re.MULTILINE
        ):
            if not _OWN.fullmatch(match[2]):
                variables[match[2]] = "x" in match[1], re.sub(r'\\(["$`\\])', r"\1", match[3])
        return variables

    def unknowns(self, text: str, run: ScriptRun) -> list[Unknown]:
        """Return what is not known of a text."""
        numbers = [int(n) for n in re.findall(rf"(?i){self.token}(\d{{1,7}})_", text)]
        marks = [run.marks[n] for n in dict.fromkeys(numbers) if n < len(run.marks)]
        return [Unknown(shown, line, (name,) if name else ()) for shown, line, name in marks]

    def folders(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Return the paths from where the script is or starts in a setting, and --env for them."""
        for match in re.finditer(rf"({self.start}|{self.source})([^,'\"\]}}\s]*)", text):
            yield match[2], ("PWD",) if match[1] == self.start else ()

    def at_home(self, text: str) -> str:
        """Return a text in which a path of the home folder begins with `~`."""
        text = re.sub(rf"(?<=[=\[,'\"]){self.home}(?=[/,'\"\]}}\s]|$)", "~", text)
        home = str(Path.home())
        text = re.sub(f"{self.start}|{self.source}", "", text.replace(self.home, home))
        return re.sub(rf"(?<=[=\[,'\"]){re.escape(home)}(?=[/,'\"\]}}\s]|$)", "~", text)

    def plain(self, text: str, run: ScriptRun) -> str:
        """Return a text for a person: marks are what the script writes."""

        def written(match: re.Match[str]) -> str:
            number = int(match[1])
            return run.marks[number][0] if number < len(run.marks) else ""

        text = re.sub(rf"(?i){self.token}(\d{{1,7}})_", written, text)
        text = text.replace(f"{self.start}{Path.cwd()}", "$PWD")
        return re.sub(f"{self.start}|{self.source}", "", text).replace(self.home, "~")
