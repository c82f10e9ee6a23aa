"""Launch scripts: the command in them that starts verl, and its settings. No script is run.

`interpreter` evaluates the script with what is known: its defaults, and the variables and
arguments that the user gives. This module reads the command that comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import DataError, unreadable_file
from rewardkit.launch.script_import.shell.interpreter import run_script
from rewardkit.launch.script_import.shell.scope import (
    HOME_SIGN,
    MARK,
    SCRIPT_SIGN,
    START_SIGN,
    ScriptRecord,
    ShellScope,
    TrainerCommand,
    Unknown,
    first_scope,
    is_unknown,
    plain,
    unsigned,
)
from rewardkit.launch.script_import.shell.tree import (
    ProblemLog,
    ScriptProblem,
    parse_shell,
    used_names,
)
from rewardkit.launch.script_import.trainer_command import OVERRIDE, other_kind

#: Characters of a script and of one setting, and settings of a command.
MAX_SCRIPT = 1_000_000
MAX_SETTING = 4_000
MAX_SETTINGS = 2_000

#: Exports that are settings of the run even if the script itself uses them.
SETTING = re.compile(
    r"(?:ASCEND|CUDA|GLOO|HCCL|HF|HYDRA|MODELSCOPE|NCCL|OMP|PYTORCH|RAY|SWANLAB|TORCH|VLLM|WANDB)_"
    r"\w+|TASK_QUEUE_ENABLE|TOKENIZERS_PARALLELISM|PYTHONUNBUFFERED"
)

#: Blanks and quotes of web pages, which are no blanks and quotes for bash.
_PASTED = str.maketrans({"\u00a0": " ", "\u3000": " ", "“": '"', "”": '"', "‘": "'", "’": "'"})
_SIGNED_PATH = re.compile(f"[{START_SIGN}{SCRIPT_SIGN}]([^,'\"\\]}}\\s]*)")
_AT_HOME = re.compile(f"(?<=[=\\[,'\"]){HOME_SIGN}[^,'\"\\]}}\\s]*")


class ScriptSetting(NamedTuple):
    """An argument of verl's module, as the shell would pass it, and its line in the script."""

    text: str
    line: int


class OpenSetting(NamedTuple):
    """A setting whose value only a run of the script can tell.

    Attributes:
        key: the key, with its sign.
        text: the value as the script writes it.
        line: the line number of the setting.
        unknowns: what is not known of it.
    """

    key: str
    text: str
    line: int
    unknowns: tuple[Unknown, ...]


@dataclass(frozen=True, kw_only=True)
class LaunchScript:
    """The command of a launch script that starts verl.

    Attributes:
        module: verl's module, as in `verl.trainer.main_ppo`; "" for a plain list of settings.
        config_name: the value of Hydra's `--config-name`, without `.yaml`; "" where there is none.
        overrides: the settings whose values are known, in the order of the command.
        unresolved: the settings whose values only a run of the script can tell.
        env: exports that look like settings of the run.
        problems: what the reader of the script should know, in the order of the lines.
        variables: all that the script sets, with their last values.
        launcher: the words before the interpreter, such as `uv run`.
    """

    module: str
    config_name: str
    overrides: tuple[ScriptSetting, ...]
    unresolved: tuple[OpenSetting, ...]
    env: Mapping[str, str]
    problems: tuple[ScriptProblem, ...]
    variables: Mapping[str, str]
    launcher: tuple[str, ...] = ()


def read_script(path: str | Path) -> str:
    """Return the text of a script's file.

    Raises:
        SourceError: it cannot be opened.
        DataError: it is longer than 1 MB, or is not UTF-8 text.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            raw = file.read(MAX_SCRIPT + 1)
        if len(raw) > MAX_SCRIPT:
            raise DataError(
                f"{path}: longer than {MAX_SCRIPT:,} bytes, the limit for launch scripts."
            )
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise unreadable_file(path, error) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text.") from None


def parse_script(
    text: str, where: str, env: Mapping[str, str] | None = None, arguments: Iterable[str] = ()
) -> LaunchScript:
    """Return the settings of a launch script, or of a plain list of `key=value`. Nothing is run.

    Args:
        text: the script, up to 1 MB.
        where: its file, for messages; the script's own folder is known if it exists.
        env: variables that the script is started with.
        arguments: the arguments that the script is started with.

    Raises:
        DataError: the script is too long or too complex, is binary, expands beyond the limits, does
            not start a run of verl, starts several, or the run depends on a test that cannot be
            evaluated.
        MissingPackageError: tree-sitter is not installed.
    """
    if len(text) > MAX_SCRIPT:
        raise DataError(
            f"{where}: longer than {MAX_SCRIPT:,} characters, the limit for launch scripts."
        )
    if re.search("[\0-\x04]", text):
        raise DataError(f"{where}: not text: it has NUL bytes or other control characters.")
    record = ScriptRecord()
    scope = first_scope(where if Path(where).is_file() else "", env or {}, arguments, record)
    try:
        root = parse_shell(_clean(text, record.problems), record.problems)
        run_script(root, scope)
        command = _command(scope)
        module, reader = command.module, _ArgumentReader(scope)
        reader.read(command.arguments)
        variables = scope.variables.items()
        return LaunchScript(
            module=module,
            config_name=reader.config_name.removesuffix(".yaml"),
            overrides=tuple(reader.overrides),
            unresolved=tuple(reader.unresolved),
            env=dict(_env(command.env, used_names(root), record)),
            problems=record.problems.in_order(),
            variables={name: plain(" ".join(items), scope) for name, items in variables},
            launcher=tuple(_shown(word, scope) for word in command.launcher),
        )
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _command(scope: ShellScope) -> TrainerCommand:
    """Return the command of a script that starts a run of reinforcement learning."""
    runs = [command for command in scope.commands if not other_kind(command)]
    others = [command for command in scope.commands if other_kind(command)]
    if not runs:
        raise DataError(_no_run(scope, others))
    for other in others:
        text = (
            f"starts {other.module} ({other_kind(other)}) as well, which is not part of the recipe."
        )
        scope.record.problems.add(other.line, text, breaks=False)
    if len({(run.module, tuple(text for text, _ in run.arguments)) for run in runs}) > 1:
        lines = ", ".join(dict.fromkeys(str(run.line) for run in runs))
        raise DataError(
            f"starts {len(runs)} runs with different settings (line {lines}): a recipe describes one. "
            "Import each as a file of its own."
        )
    (run, *_) = runs
    engine = scope.variables.get("model_engine")
    if engine and not run.module:  # in a list of settings, this one has the form of a variable
        return replace(run, arguments=((f"model_engine={engine[0]}", run.line), *run.arguments))
    return run


def _no_run(scope: ShellScope, others: list[TrainerCommand]) -> str:
    record = scope.record
    if others:
        first = others[0]
        return (
            f"starts {first.module} (line {first.line}), {other_kind(first)}: a recipe describes a run "
            "of verl.trainer.main_ppo."
        )
    if record.exits:
        return (
            f"ends at line {record.exits[-1]} before it starts verl. Give what it asks for: "
            "--env NAME=VALUE for its variables, --arg VALUE for its arguments."
        )
    if record.other_scripts:
        script, line = record.other_scripts[0]
        return (
            f"does not start verl itself: line {line} runs {unsigned(script)}. Import that script."
        )
    guesses = [problem for problem in record.problems.in_order() if "is set:" in problem.text]
    hint = f" Line {guesses[0].lines[0]} {guesses[0].text}" if guesses else ""
    return f"does not start verl (python3 -m verl.trainer.main_ppo ...) and has no key=value.{hint}"


def _clean(text: str, problems: ProblemLog) -> str:
    """Return the text with Unix line ends, ASCII quotes and ASCII blanks."""
    if "\r" in text:
        problems.add(1, "Windows line ends: bash does not run it (sed -i 's/\\r$//').")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = text.translate(_PASTED)
    if clean != text:
        place = next(
            i for i, pair in enumerate(zip(text, clean, strict=True)) if len(set(pair)) > 1
        )
        line = text.count("\n", 0, place) + 1
        problems.add(line, "quotes or blanks of a web page, which bash reads as letters.")
    return clean


def _env(
    env: Mapping[str, str], used: frozenset[str], record: ScriptRecord
) -> Iterator[tuple[str, str]]:
    """Yield the exports that are settings of the run, not only of the script."""
    for name, value in sorted(env.items()):
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            continue
        if not SETTING.fullmatch(name) and name in used:
            continue
        if is_unknown(value):
            unknown = record.unknowns[int(MARK.findall(value)[0])]
            text = f"exports {name}, which only a run can tell ({unknown.text}): set it under env:."
            record.problems.add(unknown.line, text, breaks=False)
        else:
            yield name, _at_home(f"={value}")[1:]


def _at_home(text: str) -> str:
    """Return a setting in which a path of the home folder begins with `~`."""
    home = str(Path.home())

    def short(match: re.Match[str]) -> str:
        path = match[0][1:]
        return f"~{path.removeprefix(home)}" if f"{path}/".startswith(f"{home}/") else path

    return unsigned(_AT_HOME.sub(short, text))


def _shown(word: str, scope: ShellScope) -> str:
    """Return a word for a person: the folder that the script starts in is not the importer's."""
    return plain(word.replace(f"{START_SIGN}{Path.cwd()}", "$PWD"), scope)


class _ArgumentReader:
    """Reads the arguments of verl's module."""

    def __init__(self, scope: ShellScope) -> None:
        self.scope = scope
        self.problems = scope.record.problems
        self.config_name = ""
        self.overrides: list[ScriptSetting] = []
        self.unresolved: list[OpenSetting] = []

    def read(self, fields: Iterable[tuple[str, int]]) -> None:
        arguments = _join_lists(fields, self.problems)
        for text, line in arguments:
            option, equals, value = text.partition("=")
            if option in {"--config-name", "-cn"}:
                self.config_name = value if equals else next(arguments, ("", 0))[0]
            elif option in {"--config-path", "-cp"}:
                _ = equals or next(arguments, None)
            elif text.startswith("-"):
                message = f"the option {option[:80]!r} is not taken over."
                self.problems.add(line, plain(message, self.scope), breaks=False)
            elif len(text) > MAX_SETTING:
                message = f"a setting of more than {MAX_SETTING:,} characters: left out."
                self.problems.add(line, message)
            elif (equals and not is_unknown(option)) or text.startswith("~"):
                self._take(text.strip(), line)
            else:
                self._refuse(text, line)
        if len(self.overrides) > MAX_SETTINGS:
            raise DataError(f"more than {MAX_SETTINGS:,} settings.")

    def _take(self, text: str, line: int) -> None:
        """Take a setting; one that depends on a branch that is not known is refused."""
        unknowns = self.scope.unknowns_in(text)
        key, _, value = text.partition("=")
        if branches := [unknown for unknown in unknowns if unknown.is_branch]:
            raise DataError(_branch_message(key.lstrip("+~"), line, branches))
        unknowns += _missing_places(text, line)
        if unknowns:
            shown = plain(value, self.scope)
            self.unresolved.append(OpenSetting(key, shown, line, tuple(unknowns)))
        else:
            self.overrides.append(ScriptSetting(_at_home(text), line))

    def _refuse(self, text: str, line: int) -> None:
        """Say that an argument is not a setting, if bash passes it at all."""
        unknowns = self.scope.unknowns_in(text)
        if not text.strip():
            return
        if branches := [unknown for unknown in unknowns if unknown.is_branch]:
            raise DataError(_branch_message("what the command passes to verl", line, branches))
        shown = plain(text, self.scope)[:80]
        if unknowns and all(unknown.is_unset for unknown in unknowns) and not MARK.sub("", text):
            names = " ".join(f"--env {n}=VALUE" for unknown in unknowns for n in unknown.names[:1])
            message = f"passes {shown} on, which the script does not set ({names or '--arg'})."
            self.problems.add(line, message, breaks=False)
        elif unknowns:
            message = f"passes {shown} on, which only a run can tell: settings may be missing."
            self.problems.add(line, message)
        else:
            message = f"{shown!r} is not key=value: verl does not start with it."
            self.problems.add(line, message)


def _branch_message(what: str, line: int, unknowns: list[Unknown]) -> str:
    """Return why a setting that a test decides cannot be imported, and what would decide it."""
    first = unknowns[0]
    names = list(dict.fromkeys(name for unknown in unknowns for name in unknown.names[:1]))
    hint = " ".join(f"--env {name}=VALUE" for name in names)
    return (
        f"{what} (line {line}) depends on the test of line {first.line} ({first.text[:80]}), which "
        f"only a run can tell. Pass {hint}."
    )


def _missing_places(text: str, line: int) -> list[Unknown]:
    """Return the folders of the script and of its start in a setting that lead to nothing here."""
    missing = []
    for match in _SIGNED_PATH.finditer(text):
        if not Path(match[1]).exists():
            names = ("PWD",) if match[0][0] == START_SIGN else ()
            missing.append(Unknown(match[1], line, names))
    return missing


def _join_lists(
    fields: Iterable[tuple[str, int]], problems: ProblemLog
) -> Iterator[tuple[str, int]]:
    """Yield the arguments; a list that the shell splits at its blanks is one argument."""
    parts: list[str] = []
    begun = depth = 0
    for text, line in fields:
        if parts and (depth <= 0 or OVERRIDE.match(text) or len(parts) == 50):
            yield "".join(parts), begun
            parts, depth = [], 0
        if parts:
            message = "a list with blanks and without quotes: bash splits it, and verl fails."
            problems.add(begun, message)
        begun = begun if parts else line
        depth += sum((c in "[{") - (c in "]}") for c in text) if parts or "=" in text else 0
        parts.append(text)
    if parts:
        yield "".join(parts), begun
