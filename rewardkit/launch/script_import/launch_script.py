"""Launch scripts: the command in them that starts verl, and its settings. No script is run.

`script_runs` lets bash read the script. This module reads the command that comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import DataError, unreadable_file
from rewardkit.launch.script_import.script_runs import ScriptRun, ScriptRuns, Trainer, Unknown
from rewardkit.launch.script_import.trainer_command import OVERRIDE, other_kind

Problems = dict[tuple[str, bool], list[int]]

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

#: What copying does to a line that continues, and what it should be.
_BROKEN_LINES = [
    (r"\\[ \t]+#[^\n]*$", r"\\", "a comment after the backslash: bash ends the command there."),
    (r"\\[ \t]+$", r"\\", "blanks after the backslash: bash ends the command there."),
    (r"(?<=[^\s\\])\\\n(?=[+~]*\w+(?:\.\w+)+=)", " \\\\\n", "no blank before the backslash: bash joins the lines."),
    (r"(?<=\s)\\ (?=[+~]*\w+(?:\.\w+)+=)", "  ", "a backslash inside a line: bash joins it with the setting."),
]  # fmt: skip
_BRACES = re.compile(
    r"(?<![$\w'\"{.])[+~]*\w+\.[^\s'\"$]{0,200}\{[^\s{}'\"]{0,200}(?:,|\.\.)[^\s{}'\"]{0,200}\}"
)
_BRACES_SPLIT = (
    "braces without quotes: bash makes several words of them, and verl does not get the value."
)

#: Variables of the shell itself.
_SHELL = frozenset("HOME LC_ALL OLDPWD PATH PWD SHELL SHLVL".split())
_BELOW = "settings below the end of the command: bash does not pass them."


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


class ScriptProblem(NamedTuple):
    """What the reader of a script should know.

    Attributes:
        lines: line numbers in the script, from 1.
        text: the problem.
        breaks: whether bash or verl does something else than the script means.
    """

    lines: tuple[int, ...]
    text: str
    breaks: bool


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
        UsageError: bash is missing.
    """
    if len(text) > MAX_SCRIPT:
        raise DataError(
            f"{where}: longer than {MAX_SCRIPT:,} characters, the limit for launch scripts."
        )
    if re.search("[\0-\x04]", text):
        raise DataError(f"{where}: not text: it has NUL bytes or other control characters.")
    problems: Problems = {}
    try:
        clean = _clean(text, problems)
        with ScriptRuns(clean, where, dict(env or {}), list(arguments)) as runs:
            run, partial = runs.explore()
        return _ScriptReader(clean, runs, run, problems).read(partial)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _add(problems: Problems, line: int, text: str, *, breaks: bool = True) -> None:
    if len(problems) < 100 or (text, breaks) in problems:
        lines = problems.setdefault((text, breaks), [])
        if line not in lines and len(lines) < 100:
            lines.append(line)


def _clean(text: str, problems: Problems) -> str:
    """Return the text with Unix line ends, ASCII quotes, and lines that continue as they mean to."""
    if "\r" in text:
        _add(problems, 1, "Windows line ends: bash does not run it (sed -i 's/\\r$//').")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = text.translate(_PASTED)
    if clean != text:
        place = next(
            i for i, pair in enumerate(zip(text, clean, strict=True)) if pair[0] != pair[1]
        )
        line = text.count("\n", 0, place) + 1
        _add(problems, line, "quotes or blanks of a web page, which bash reads as letters.")
    for pattern, meant, problem in _BROKEN_LINES:
        counted = [0, 1]

        def repair(match: re.Match[str], meant: str = meant, problem: str = problem) -> str:
            counted[1] += clean.count("\n", counted[0], match.start())  # noqa: B023
            counted[0] = match.start()  # noqa: B023
            _add(problems, counted[1], problem)  # noqa: B023
            return match.expand(meant)

        clean = re.sub(pattern, repair, clean, flags=re.MULTILINE)
    return clean


class _ScriptReader:
    """Reads what bash passes to the trainer of a script."""

    def __init__(self, text: str, runs: ScriptRuns, run: ScriptRun, problems: Problems) -> None:
        self.text, self.runs, self.run, self.problems = text, runs, run, problems
        self.config_name = ""
        self.overrides: list[ScriptSetting] = []
        self.unresolved: list[OpenSetting] = []
        self.lines: dict[str, list[int]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                for key in re.findall(r"[\w./@-]+(?==)", line):
                    self.lines.setdefault(key, []).append(number)

    def add(self, line: int, text: str, *, breaks: bool = True) -> None:
        _add(self.problems, line, text, breaks=breaks)

    def read(self, partial: tuple[str, int] | None) -> LaunchScript:
        """Return the script; `partial` is a test that may also start nothing."""
        trainer = self._trainer()
        if partial and trainer.module:
            text = f"starts the run only where the test ({partial[0]}) says so."
            self.add(partial[1], text, breaks=False)
        for line, note in self.run.notes:
            self.add(line, note, breaks=False)
        for line in self.run.unclosed:
            self.add(line, "a quote that is never closed.")
        for line in self.run.below:
            self.add(line, _BELOW)
        for match in _BRACES.finditer(self.text):
            self.add(self.text.count("\n", 0, match.start()) + 1, _BRACES_SPLIT)
        self._read_arguments(trainer)
        variables = self.runs.variables(trainer.state)
        return LaunchScript(
            module=trainer.module,
            config_name=self.config_name.removesuffix(".yaml"),
            overrides=tuple(self.overrides),
            unresolved=tuple(self.unresolved),
            env=dict(self._env(trainer, variables)),
            problems=tuple(sorted(ScriptProblem(tuple(n), *k) for k, n in self.problems.items())),
            variables={
                name: self.runs.plain(value, self.run) for name, (_, value) in variables.items()
            },
            launcher=tuple(self.runs.plain(word, self.run) for word in trainer.launcher),
        )

    def _trainer(self) -> Trainer:
        """Return the command that starts a run of reinforcement learning."""
        kinds = {t: other_kind(t.module, t.arguments) for t in self.run.trainers}
        ours = [trainer for trainer, kind in kinds.items() if not kind]
        others = [(trainer, kind) for trainer, kind in kinds.items() if kind]
        if any(trainer.module for trainer in ours):
            ours = [trainer for trainer in ours if trainer.module]
        if not ours:
            raise DataError(self._no_run(others))
        for other, kind in others:
            text = f"starts {other.module} ({kind}) as well, which is not part of the recipe."
            self.add(other.line, text, breaks=False)
        if len({(t.module, t.arguments) for t in ours}) > 1:
            lines = ", ".join(dict.fromkeys(str(trainer.line) for trainer in ours))
            raise DataError(
                f"starts {len(ours)} runs with different settings (line {lines}): a recipe describes "
                "one. Import each as a file of its own."
            )
        return ours[0]

    def _no_run(self, others: list[tuple[Trainer, str]]) -> str:
        if others:
            first, kind = others[0]
            return (
                f"starts {first.module} (line {first.line}), {kind}: a recipe describes a run of "
                "verl.trainer.main_ppo."
            )
        if self.run.exits:
            return (
                f"ends at line {self.run.exits[-1]} before it starts verl. Give what it asks for: "
                "--env NAME=VALUE for its variables, --arg VALUE for its arguments."
            )
        if self.run.scripts:
            script, line = self.run.scripts[0]
            name = self.runs.plain(script, self.run)
            return f"does not start verl itself: line {line} runs {name}. Import that script."
        return "does not start verl (python3 -m verl.trainer.main_ppo ...) and has no key=value."

    def _line(self, text: str, trainer: Trainer) -> int:
        """Return the line of a setting: the next one that writes its key, else that of the command."""
        lines = self.lines.get(text.partition("=")[0].lstrip("+~"), [])
        return lines.pop(0) if len(lines) > 1 else lines[0] if lines else trainer.line

    def _read_arguments(self, trainer: Trainer) -> None:
        fields = ((text, self._line(text, trainer)) for text in trainer.arguments)
        arguments = _join_lists(fields, self.problems)
        for text, line in arguments:
            option, equals, value = text.partition("=")
            if option in {"--config-name", "-cn"}:
                self.config_name = value if equals else next(arguments, ("", 0))[0]
            elif option in {"--config-path", "-cp"}:
                _ = equals or next(arguments, None)
            elif text.startswith("-"):
                shown = self.runs.plain(option, self.run)[:80]
                self.add(line, f"the option {shown!r} is not taken over.", breaks=False)
            elif len(text) > MAX_SETTING:
                self.add(line, f"a setting of more than {MAX_SETTING:,} characters: left out.")
            elif (equals and self.runs.token not in option) or text.startswith("~"):
                self._take(text.strip(), line)
            else:
                self._refuse(text, line)
        if len(self.overrides) > MAX_SETTINGS:
            raise DataError(f"more than {MAX_SETTINGS:,} settings.")

    def _take(self, text: str, line: int) -> None:
        """Take a setting; a folder of the script, or of its start, is known if it exists here."""
        key, _, value = text.partition("=")
        unknowns = self.runs.unknowns(text, self.run)
        unknowns += [
            Unknown(path, line, names)
            for path, names in self.runs.folders(text)
            if not Path(path).exists()
        ]
        if unknowns:
            shown = self.runs.plain(value, self.run)
            self.unresolved.append(OpenSetting(key, shown, line, tuple(unknowns)))
        else:
            self.overrides.append(ScriptSetting(self.runs.at_home(text), line))

    def _refuse(self, text: str, line: int) -> None:
        """Say that an argument is not a setting, if bash passes it at all."""
        if not text.strip():
            return
        unknowns = self.runs.unknowns(text, self.run)
        shown = self.runs.plain(text, self.run)[:80]
        if unknowns and all(re.fullmatch(r"\$\w+", unknown.text) for unknown in unknowns):
            names = " ".join(
                f"--env {name}=VALUE" for unknown in unknowns for name in unknown.names
            )
            message = f"passes {shown} on, which the script does not set ({names or '--arg'})."
            self.add(line, message, breaks=False)
        elif unknowns:
            message = f"passes {shown} on, which only a run can tell: settings may be missing."
            self.add(line, message)
        else:
            self.add(line, f"{shown!r} is not key=value: verl does not start with it.")

    def _env(
        self, trainer: Trainer, variables: Mapping[str, tuple[bool, str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the exports that are settings of the run, not only of the script."""
        exports = {name: value for name, (is_exported, value) in variables.items() if is_exported}
        if any(word.rpartition("/")[2] == "env" for word in trainer.launcher):
            exports |= {word.partition("=")[0]: word.partition("=")[2] for word in trainer.launcher}
        for name, value in sorted(exports.items()):
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or name in _SHELL:
                continue
            if not re.search(rf"(?<![\w$.]){name}=|export[^\n;&|]*\b{name}\b", self.text):
                continue  # it is only given to the script
            if not SETTING.fullmatch(name) and re.search(rf"\$\{{?{name}\b", self.text):
                continue
            if unknowns := self.runs.unknowns(value, self.run):
                text = f"exports {name}, which only a run can tell ({unknowns[0].text}): set it under env:."
                self.add(unknowns[0].line, text, breaks=False)
            else:
                yield name, self.runs.at_home(f"={value}")[1:]


def _join_lists(fields: Iterable[tuple[str, int]], problems: Problems) -> Iterator[tuple[str, int]]:
    """Yield the arguments; a list that the shell splits at its blanks is one argument."""
    parts: list[str] = []
    begun = depth = 0
    for text, line in fields:
        if parts and (depth <= 0 or OVERRIDE.match(text) or len(parts) == 50):
            yield "".join(parts), begun
            parts, depth = [], 0
        if parts:
            message = "a list with blanks and without quotes: bash splits it, and verl fails."
            _add(problems, begun, message)
        begun = begun if parts else line
        depth += sum((c in "[{") - (c in "]}") for c in text) if parts or "=" in text else 0
        parts.append(text)
    if parts:
        yield "".join(parts), begun
