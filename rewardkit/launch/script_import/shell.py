"""Launch scripts, read without running them.

A colleague's `run.sh` is text from outside: no shell sees it. What such scripts use of bash is
understood, within limits; what is known only when the script runs (`$(date)`, a variable from
outside) stays as it is written and is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell_values import Scope, fields_of, value_of
from rewardkit.launch.script_import.shell_words import Problem, Problems, Word, commands

#: Characters of a script, of one setting; settings of a command.
MAX_SCRIPT = 1_000_000
MAX_SETTING = 4_000
MAX_SETTINGS = 2_000

#: Exports that are settings of the run, whether the script itself uses them or not.
SETTING = re.compile(
    r"(?:ASCEND|CUDA|GLOO|HCCL|HF|HYDRA|MODELSCOPE|NCCL|OMP|PYTORCH|RAY|SWANLAB|TORCH|VLLM|WANDB)_"
    r"\w+|TASK_QUEUE_ENABLE|TOKENIZERS_PARALLELISM|PYTHONUNBUFFERED"
)

_ASSIGNMENT = re.compile(r"(?!model_engine=)([A-Za-z_]\w*)(\+?)=", re.ASCII)
_OVERRIDE = re.compile(r"[+~]*(?:model_engine|\w+[./@][\w./@\-]*)=|~\w+\.")
_MODULE = re.compile(r"\w[\w.]*\.main_(?:ppo|dapo)\w*", re.ASCII)
_MODULE_FILE = re.compile(r"(?:.*/)?main_(?:ppo|dapo)\w*\.py", re.ASCII)
_OPENING = frozenset({"if", "for", "while", "until", "case", "select", "function", "{"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_MIDDLE = frozenset({"then", "else", "elif", "do", "!", "time"})
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})

#: What copying from a web page leaves: blanks and quotes that bash does not know.
_PASTED = str.maketrans({"\u00a0": " ", "\u3000": " ", "“": '"', "”": '"', "‘": "'", "’": "'"})


class Setting(NamedTuple):
    """An argument of verl's module, as the shell would pass it, and its line in the script."""

    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """What a launch script asks of verl.

    Attributes:
        module: of verl, as in `verl.trainer.main_ppo`; "" for a plain list of settings.
        config_name: of Hydra's `--config-name`, without `.yaml`; "" where there is none.
        overrides: in the order of the command.
        env: exports that look like settings of the run.
        problems: in the order of the lines.
        unresolved: what is known only when the script runs, where an override has it.
        variables: all that the script sets, with their last values.
    """

    module: str
    config_name: str
    overrides: tuple[Setting, ...]
    env: Mapping[str, str]
    problems: tuple[Problem, ...]
    unresolved: tuple[str, ...]
    variables: Mapping[str, str]


@dataclass
class _Reading:
    """How far a script is read."""

    scope: Scope = field(default_factory=Scope)
    problems: Problems = field(default_factory=Problems)
    exported: set[str] = field(default_factory=set)
    conditional: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    module: str = ""
    config_name: str = ""
    overrides: list[Setting] = field(default_factory=list)


def read_script(path: str | Path) -> str:
    """The text of a script's file.

    Raises:
        DataError: it is not there, is longer than 1 MB, or is no text in UTF-8.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            raw = file.read(MAX_SCRIPT + 1)
        if len(raw) > MAX_SCRIPT:
            raise DataError(f"{path}: longer than {MAX_SCRIPT:,} bytes; no launch script is.")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text in UTF-8.") from None


def parse_script(text: str, where: str) -> Script:
    """What a launch script, or a plain list of `key=value`, asks of verl. Nothing is run.

    Args:
        text: of the script, up to 1 MB.
        where: its file, for messages.

    Raises:
        DataError: it is too long, no text, expands beyond the limits, or starts no verl.
    """
    if len(text) > MAX_SCRIPT:
        raise DataError(f"{where}: longer than {MAX_SCRIPT:,} characters; no launch script is.")
    if "\0" in text:
        raise DataError(f"{where}: no text (it has NUL bytes).")
    state = _Reading()
    try:
        for command in commands(_cleaned(text, state.problems), state.problems):
            _take(command, state)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if not state.module and not state.overrides:
        raise DataError(
            f"{where}: starts no verl (python3 -m verl.trainer.main_ppo ...) and has no key=value."
        )
    return _read(state)


def _read(state: _Reading) -> Script:
    whole = "\n".join(setting.text for setting in state.overrides)
    for name, line in state.conditional.items():
        if name in state.scope.used:
            text = f"{name} is set inside an if, a loop or a function: the last value is taken."
            state.problems.tell(line, text, breaks=False)
    return Script(
        module=state.module,
        config_name=state.config_name.removesuffix(".yaml"),
        overrides=tuple(state.overrides),
        env=dict(_env(state)),
        problems=state.problems.listed(),
        unresolved=tuple(raw for raw in state.scope.unresolved if raw in whole),
        variables={name: " ".join(items) for name, items in state.scope.variables.items()},
    )


def _cleaned(text: str, problems: Problems) -> str:
    """The text with Unix line ends, and with the quotes and blanks that a web page changed."""
    if "\r" in text:
        problems.tell(1, "Windows line ends: bash does not run it (sed -i 's/\\r$//').")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = text.translate(_PASTED)
    if clean != text:
        place = next(
            i for i, pair in enumerate(zip(text, clean, strict=True)) if len(set(pair)) > 1
        )
        line = text.count("\n", 0, place) + 1
        problems.tell(line, "quotes or blanks of a web page, which bash does not know.")
    return clean


def _env(state: _Reading) -> Iterator[tuple[str, str]]:
    """Exports that are not there for the script itself."""
    for name in sorted(state.exported):
        value = "".join(state.scope.variables.get(name, [])[:1])
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            continue
        if "$" not in value and (SETTING.fullmatch(name) or name not in state.scope.used):
            yield name, value


def _take(words: list[Word], state: _Reading) -> None:
    """Take what one simple command says."""
    place = 0
    while place < len(words) and _is_keyword(words[place], state):
        place += 1
    given = []
    while place < len(words) and _ASSIGNMENT.match(words[place].start):
        given.append(_assign(words[place], state))
        place += 1
    words = words[place:]
    if not words:
        return
    name = _whole(words[0])
    if name in _DECLARING:
        _declare(words, state)
    elif name in {"source", "."}:
        text = "reads another file; what it sets is not known."
        state.problems.tell(words[0].line, text, breaks=False)
    else:
        _command(words, given, state)


def _whole(word: Word) -> str:
    """A word of plain text as it stands, "" for any other."""
    return word.parts[0].text if len(word.parts) == 1 and word.parts[0].kind == "text" else ""


def _is_keyword(word: Word, state: _Reading) -> bool:
    """Whether a word is of an if, a loop or a function; how deep it is in them is counted."""
    text = word.start if word.start == _whole(word) else ""
    state.depth += (text in _OPENING) - (text in _CLOSING and state.depth > 0)
    return text in _OPENING | _CLOSING | _MIDDLE


def _assign(word: Word, state: _Reading) -> str:
    """Take an assignment; the name."""
    match = _ASSIGNMENT.match(word.start)
    name, plus = match.groups() if match else ("", "")
    if word.items is not None:
        items = [text for item in word.items for text in fields_of(item, state.scope)]
    else:
        items = [value_of(word, state.scope)[len(name) + len(plus) + 1 :]]
    before = state.scope.variables.get(name, []) if plus else []
    joined = [before[0] + items[0]] if before and word.items is None else before + items
    state.scope.variables[name] = state.scope.spend(joined)
    if state.depth:
        state.conditional[name] = word.line
    return name


def _declare(words: list[Word], state: _Reading) -> None:
    for word in words[1:]:
        name = _assign(word, state) if _ASSIGNMENT.match(word.start) else _whole(word)
        if words[0].start == "export":
            state.exported.add(name)


def _command(words: list[Word], given: list[str], state: _Reading) -> None:
    """Take the settings of a command that starts verl, or of lines that are settings."""
    state.scope.arguments = False
    fields = [(text, word.line) for word in words for text in fields_of(word, state.scope)]
    place = _module_place([text for text, _ in fields])
    if place and state.module:
        text = "starts verl once more: only the first command is taken."
        state.problems.tell(words[0].line, text)
    elif place:
        file = fields[place][0].removesuffix(".py")
        state.module = file.lstrip("./").replace("/", ".")
        state.exported.update(given)
        _arguments(fields[place + 1 :], state)
    elif fields and _OVERRIDE.match(fields[0][0]):
        if state.module:
            text = "settings below the end of the command: bash does not pass them."
            state.problems.tell(words[0].line, text)
        _arguments(fields, state)


def _module_place(fields: list[str]) -> int:
    """Where a command names verl's module, as `-m verl.trainer.main_ppo` or as a file; or 0."""
    for i, text in enumerate(fields[1:], 1):
        if fields[i - 1] == "-m" and len(text) < 100 and _MODULE.fullmatch(text):
            return i
        if _MODULE_FILE.fullmatch(text) and any(
            re.search("python|torchrun", f) for f in fields[:i]
        ):
            return i
    return 0


def _arguments(fields: list[tuple[str, int]], state: _Reading) -> None:
    """Take the arguments of verl's module."""
    arguments = _joined_lists(fields, state.problems)
    for text, line in arguments:
        option, equals, value = text.partition("=")
        if option in {"--config-name", "-cn"}:
            state.config_name = value if equals else next(arguments, ("", 0))[0]
        elif option in {"--config-path", "-cp"}:
            _ = equals or next(arguments, None)
        elif text.startswith("-"):
            state.problems.tell(
                line, f"the option {option[:80]!r} is not taken over.", breaks=False
            )
        elif len(text) > MAX_SETTING:
            state.problems.tell(
                line, f"a setting of more than {MAX_SETTING:,} characters: left out."
            )
        elif equals or text.startswith("~"):
            state.overrides.append(Setting(text.strip(), line))
        elif text.strip():
            told = f"{text[:80]!r} is no key=value: verl does not start with it."
            state.problems.tell(line, told)
    if state.scope.arguments:
        told = 'the script passes its own arguments on ("$@"): what they were is not known.'
        state.problems.tell(fields[0][1] if fields else 1, told, breaks=False)
    if len(state.overrides) > MAX_SETTINGS:
        raise DataError(f"more than {MAX_SETTINGS:,} settings.")


def _joined_lists(fields: list[tuple[str, int]], problems: Problems) -> Iterator[tuple[str, int]]:
    """The arguments, with lists that the shell takes apart at their blanks put together."""
    parts: list[str] = []
    begun = depth = 0
    for text, line in fields:
        if parts and (depth <= 0 or _OVERRIDE.match(text) or len(parts) == 50):
            yield "".join(parts), begun
            parts, depth = [], 0
        if parts:
            told = "a list with blanks, not in quotes: bash takes it apart, verl does not start."
            problems.tell(begun, told)
        begun = begun if parts else line
        depth += sum((c in "[{") - (c in "]}") for c in text) if parts or "=" in text else 0
        parts.append(text)
    if parts:
        yield "".join(parts), begun
