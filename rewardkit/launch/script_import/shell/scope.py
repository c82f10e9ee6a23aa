"""The state of a script between two of its statements: variables, arguments, functions, output.

A value may have parts that only a run of the script can tell. Such a part is a mark in the text, and
`Unknown` says what stands behind it. Two more signs mark where a path comes from: the home folder, and
the folder of the script or of its start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell.tree import ProblemLog

if TYPE_CHECKING:
    from tree_sitter import Node

#: Characters of all values of a script once expanded; statements, expansions and copies of variables.
MAX_EXPANDED = 4_000_000
MAX_STEPS = 50_000

#: Distinct parts of values that only a run can tell.
MAX_UNKNOWN = 2_000

#: Functions that call each other, texts that are run as shell, and alternatives inside alternatives.
MAX_CALLS = 40

#: Before the path of the home folder, of the folder that the script starts in, and of the script.
HOME_SIGN = "\x01"
START_SIGN = "\x02"
SCRIPT_SIGN = "\x03"
SIGNS = frozenset({HOME_SIGN, START_SIGN, SCRIPT_SIGN})

#: Stands for a blank at which the shell does not split a value.
BLANK = "\x04"

MARK = re.compile("\0(\\d+)\0")
_SIGNS = re.compile(f"[{HOME_SIGN}{START_SIGN}{SCRIPT_SIGN}]")


@dataclass(frozen=True)
class Unknown:
    """A part of a value that only a run of the script can tell.

    Attributes:
        text: the part as the script writes it.
        line: the line number of its statement, from 1.
        names: variables whose values would tell it: `--env NAME=VALUE`.
        is_unset: whether it is a variable that the script reads and does not set.
        is_branch: whether it depends on a test that cannot be evaluated.
    """

    text: str
    line: int
    names: tuple[str, ...] = ()
    is_unset: bool = False
    is_branch: bool = False


@dataclass(frozen=True)
class TrainerCommand:
    """A command of a script that starts a trainer.

    Attributes:
        module: the trainer's module, as in `verl.trainer.main_ppo`; "" for a plain list of settings.
        arguments: the arguments behind it with their lines; unknown parts are marks.
        env: variables that the command gets beyond those of the script's own start.
        line: the line number of the command.
        launcher: the words before the interpreter, such as `uv run`.
    """

    module: str
    arguments: tuple[tuple[str, int], ...]
    env: Mapping[str, str]
    line: int
    launcher: tuple[str, ...] = ()


@dataclass
class ScriptRecord:
    """What all scopes of a script share: problems, unknown parts and the work that is done."""

    problems: ProblemLog = field(default_factory=ProblemLog)
    unknowns: list[Unknown] = field(default_factory=list)
    expanded: int = 0
    steps: int = 0
    exits: list[int] = field(default_factory=list)
    other_scripts: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class ShellScope:
    """The variables at a statement of a script, and what it has started up to there.

    Attributes:
        record: what all scopes of the script share.
        env: variables that the user gives: the value of a variable that the script cannot tell.
        variables: name -> its items, a list that is never changed; a plain variable has one. An element `m[key]` of an
            associative array has its own name.
        removed: names that the script unsets: nobody else can set them.
        exported: names of the variables that commands get.
        arguments: the arguments of the script or of a function.
        knows_arguments: whether there are no others: in a function, after `set --`, and where the
            user gives some.
        script: the path of the script.
        functions: name -> the body, None if a test decides it that only a run can tell.
        commands: the trainers that are started up to here.
        output: pieces of what the commands print, where a substitution reads it.
        stdin: what a command reads from a here-document or a pipe, if that is known.
        causes: what decides the tests that could not be evaluated.
        line: the line of the statement.
        is_text: whether a text outside the script is run, so that the line stays.
        calls: levels of functions, texts and alternatives.
        exports_all: whether `set -a` exports every variable.
        exits_on_error: whether `set -e` ends the script at a command that fails.
        conditions: levels of tests, in which a failure does not end the script.
        local: variables of the function that is called, with their values outside it.
        special: variables whose assignments bash changes (`declare -i`) or refuses (`readonly`).
        leaving: the scopes that may have left a loop or a function, and how.
        substitute: runs a command substitution and returns its output.
    """

    record: ScriptRecord = field(default_factory=ScriptRecord)
    env: Mapping[str, str] = field(default_factory=dict)
    variables: dict[str, list[str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)
    knows_arguments: bool = False
    script: str = ""
    functions: dict[str, Node | None] = field(default_factory=dict)
    commands: list[TrainerCommand] = field(default_factory=list)
    output: list[str] | None = None
    stdin: Callable[[], str] | None = None
    causes: list[Unknown] = field(default_factory=list)
    line: int = 1
    is_text: bool = False
    calls: int = 0
    exports_all: bool = False
    exits_on_error: bool = False
    conditions: int = 0
    local: dict[str, list[str] | None] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)
    leaving: list[tuple[str, ShellScope]] = field(default_factory=list)
    substitute: Callable[[Node, ShellScope], str] = lambda _node, _scope: ""

    def count(self, values: list[str]) -> list[str]:
        """Add the length of values to the sum, and return them.

        Raises:
            DataError: the sum is too large.
        """
        record = self.record
        record.expanded += sum(map(len, values)) + len(values) + 1
        if record.expanded > MAX_EXPANDED:
            raise DataError(f"the script's values expand to more than {MAX_EXPANDED:,} characters.")
        return values

    def step(self, cost: int = 1) -> None:
        """Count a statement.

        Raises:
            DataError: the script has run too many.
        """
        self.record.steps += cost
        if self.record.steps > MAX_STEPS:
            raise DataError(
                f"more than {MAX_STEPS:,} statements and expansions, the limit for scripts."
            )

    def copy(self) -> ShellScope:
        """Return a scope that shares nothing with this one but the record and the causes.

        Raises:
            DataError: the script has too many alternatives.
        """
        self.step(1 + len(self.variables) // 4)
        if self.calls > MAX_CALLS:
            raise DataError(f"more than {MAX_CALLS} levels of functions or subshells.")
        return replace(
            self,
            variables=dict(self.variables),  # their lists are never changed
            removed=set(self.removed),
            exported=set(self.exported),
            arguments=list(self.arguments),
            functions=dict(self.functions),
            commands=list(self.commands),
            local=dict(self.local),
            special=dict(self.special),
            leaving=[],
            output=None if self.output is None else list(self.output),
            calls=self.calls + 1,
        )

    @contextmanager
    def condition(self) -> Iterator[None]:
        """Evaluate a test, in which `set -e` does not end the script."""
        self.conditions += 1
        try:
            yield
        finally:
            self.conditions -= 1

    @contextmanager
    def reading_text(self) -> Iterator[None]:
        """Leave the line where it is while a text outside the script's tree is read."""
        outer, self.is_text = self.is_text, True
        try:
            yield
        finally:
            self.is_text = outer

    def unknown(self, text: str, *names: str, is_unset: bool = False) -> str:
        """Return the mark of a part of a value that only a run can tell."""
        one_line = re.sub(r"\s+", " ", plain(text, self)).strip()
        return self.mark(Unknown(one_line, self.line, names, is_unset))

    def mark(self, unknown: Unknown) -> str:
        """Return the mark that stands for an unknown part."""
        unknowns = self.record.unknowns
        if unknown in unknowns[-50:]:
            return f"\0{len(unknowns) - 1 - unknowns[::-1].index(unknown)}\0"
        if len(unknowns) >= MAX_UNKNOWN:
            raise DataError(f"more than {MAX_UNKNOWN:,} values that only a run can tell.")
        unknowns.append(unknown)
        return f"\0{len(unknowns) - 1}\0"

    def unknowns_in(self, text: str) -> list[Unknown]:
        """Return the unknown parts of a value, in order."""
        return [self.record.unknowns[int(number)] for number in MARK.findall(text)]

    def settle(self, value: str, name: str) -> str:
        """Return a value whose unknown parts the user can tell by giving a variable."""

        def settled(match: re.Match[str]) -> str:
            unknown = self.record.unknowns[int(match[1])]
            if name in unknown.names:
                return match[0]
            return self.mark(replace(unknown, names=(*unknown.names, name)))

        return MARK.sub(settled, value)

    def blame(self, *texts: str) -> None:
        """Remember that the unknown parts of these values keep a test from being evaluated."""
        for text in texts:
            self.causes += [u for u in self.unknowns_in(text) if u not in self.causes]

    def set(self, name: str, items: list[str]) -> None:
        """Set a variable; the user's value replaces one that only a run can tell."""
        kind = self.special.get(name)
        if kind == "readonly" and name in self.variables:
            return
        if kind == "changed":
            items = [self.unknown(f"${name}", name)]
        if any(map(is_unknown, items)):
            given = self.env.get(name)  # an empty one is what `${name:-...}` does not take
            items = [given] if given else [self.settle(item, name) for item in items]
        self.variables[name] = self.count(items)
        self.removed.discard(name)
        if self.exports_all:
            self.exported.add(name)

    def environment(self, temporary: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a command gets from the script, with its own ones."""
        exported = {
            name: self.variables[name][0]
            for name in sorted(self.exported)
            if self.variables.get(name)
        }
        return exported | dict(temporary)


def first_scope(
    script: str, env: Mapping[str, str], arguments: Iterable[str], record: ScriptRecord
) -> ShellScope:
    """Return the scope that a script starts with."""
    places = {"HOME": [HOME_SIGN + str(Path.home())], "PWD": [START_SIGN + str(Path.cwd())]}
    given = {name: [value] for name, value in env.items()}
    given_arguments = list(arguments)
    # BASH_SOURCE is known where the script is a file: it may be copied elsewhere later.
    source = SCRIPT_SIGN + str(Path(script).absolute()) if script else ""
    return ShellScope(
        record=record,
        env=env,
        variables={**places, **({"BASH_SOURCE": [source]} if source else {}), **given},
        arguments=given_arguments,
        knows_arguments=bool(given_arguments),
        script=source,
    )


def is_unknown(text: str) -> bool:
    """Whether a value has a part that only a run can tell."""
    return "\0" in text


def unsigned(text: str) -> str:
    """Return a value without the signs of home and places."""
    return _SIGNS.sub("", text)


def plain(text: str, scope: ShellScope) -> str:
    """Return a value for a person: unknown parts as the script writes them."""
    texts = scope.record.unknowns
    return unsigned(MARK.sub(lambda match: texts[int(match[1])].text, text))
