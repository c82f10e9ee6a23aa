"""Launch scripts: the command in them that starts verl, and its settings. No script is run.

Statements are read in the order of the text, branches and loops included: the last value of a
variable counts. What only a run can resolve (`$(date)`, a variable of the environment) stays as it is
written and is listed. A new kind of statement is a case of `_read_statement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell_tree import (
    ProblemLog,
    ScriptProblem,
    line_of,
    parse_shell,
    text_of,
    used_names,
)
from rewardkit.launch.script_import.shell_values import ShellScope, fields_of, plain, value_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Characters of a script and of one setting, and settings of a command.
MAX_SCRIPT = 1_000_000
MAX_SETTING = 4_000
MAX_SETTINGS = 2_000

#: Exports that are settings of the run even if the script itself uses them.
SETTING = re.compile(
    r"(?:ASCEND|CUDA|GLOO|HCCL|HF|HYDRA|MODELSCOPE|NCCL|OMP|PYTORCH|RAY|SWANLAB|TORCH|VLLM|WANDB)_"
    r"\w+|TASK_QUEUE_ENABLE|TOKENIZERS_PARALLELISM|PYTHONUNBUFFERED"
)

_OVERRIDE = re.compile(r"[+~]*(?:model_engine|\w+[./@][\w./@\-]*)=|~\w+\.")
_MODULE = re.compile(r"\w[\w.]*\.main_(?:ppo|dapo)\w*", re.ASCII)
_MODULE_FILE = re.compile(r"(?:.*/)?main_(?:ppo|dapo)\w*\.py", re.ASCII)

#: Statements of which bash may run a part, or run a part more than once, or none.
_CONDITIONAL = frozenset(
    """
    c_style_for_statement case_statement compound_statement for_statement function_definition
    if_statement while_statement
    """.split()
)

#: Nodes that hold statements and nothing else that is read.
_SEQUENCES = frozenset(
    """
    ERROR case_item do_group elif_clause else_clause heredoc_redirect list negated_command
    pipeline program subshell variable_assignments
    """.split()
)
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})

#: Words that stand alone where the grammar does not fit.
_WORDS = frozenset(
    """
    concatenation expansion raw_string simple_expansion string word
    """.split()
)

#: Blanks and quotes of web pages, which are no blanks and quotes for bash.
_PASTED = str.maketrans({"\u00a0": " ", "\u3000": " ", "“": '"', "”": '"', "‘": "'", "’": "'"})


class ScriptSetting(NamedTuple):
    """An argument of verl's module, as the shell would pass it, and its line in the script."""

    text: str
    line: int


@dataclass(frozen=True, kw_only=True)
class LaunchScript:
    """The command of a launch script that starts verl.

    Attributes:
        module: verl's module, as in `verl.trainer.main_ppo`; "" for a plain list of settings.
        config_name: the value of Hydra's `--config-name`, without `.yaml`; "" where there is none.
        overrides: the settings, in the order of the command.
        env: exports that look like settings of the run.
        problems: what the reader of the script should know, in the order of the lines.
        unresolved: expansions in overrides that only a run of the script can resolve.
        variables: all that the script sets, with their last values.
    """

    module: str
    config_name: str
    overrides: tuple[ScriptSetting, ...]
    env: Mapping[str, str]
    problems: tuple[ScriptProblem, ...]
    unresolved: tuple[str, ...]
    variables: Mapping[str, str]


@dataclass
class _ScriptState:
    """What is known after the statements that have been read."""

    scope: ShellScope = field(default_factory=ShellScope)
    problems: ProblemLog = field(default_factory=ProblemLog)
    used: frozenset[str] = frozenset()
    exported: set[str] = field(default_factory=set)
    conditional: dict[str, int] = field(default_factory=dict)
    branches: int = 0
    module: str = ""
    config_name: str = ""
    overrides: list[ScriptSetting] = field(default_factory=list)


def read_script(path: str | Path) -> str:
    """Return the text of a script's file.

    Raises:
        DataError: it does not exist, is longer than 1 MB, or is not UTF-8 text.
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
        raise DataError(f"{path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text.") from None


def parse_script(text: str, where: str) -> LaunchScript:
    """Return the settings of a launch script, or of a plain list of `key=value`. Nothing is run.

    Args:
        text: the script, up to 1 MB.
        where: its file, for messages.

    Raises:
        DataError: it is too long or too complex, is binary, expands beyond the limits, or does not
            start verl.
        UsageError: tree-sitter is not installed.
    """
    if len(text) > MAX_SCRIPT:
        raise DataError(
            f"{where}: longer than {MAX_SCRIPT:,} characters, the limit for launch scripts."
        )
    if "\0" in text:
        raise DataError(f"{where}: not text: it has NUL bytes.")
    state = _ScriptState()
    try:
        root = parse_shell(_clean(text, state.problems), state.problems)
        state.used = used_names(root)
        _read_statement(root, state)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if not state.module and not state.overrides:
        raise DataError(
            f"{where}: does not start verl (python3 -m verl.trainer.main_ppo ...) and has no "
            "key=value."
        )
    return _script(state)


def _script(state: _ScriptState) -> LaunchScript:
    whole = "\n".join(setting.text for setting in state.overrides)
    for name, line in state.conditional.items():
        if name in state.used:
            text = (
                f"{name} is set inside an if, a loop or a function: the recipe has the last value."
            )
            state.problems.add(line, text, breaks=False)
    variables = state.scope.variables.items()
    return LaunchScript(
        module=state.module,
        config_name=state.config_name.removesuffix(".yaml"),
        overrides=tuple(state.overrides),
        env=dict(_env(state)),
        problems=state.problems.in_order(),
        unresolved=tuple(raw for raw in state.scope.unresolved if raw in whole),
        variables={name: plain(" ".join(items)) for name, items in variables},
    )


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


def _env(state: _ScriptState) -> Iterator[tuple[str, str]]:
    """Yield the exports that are settings of the run, not only of the script."""
    for name in sorted(state.exported):
        value = plain("".join(state.scope.variables.get(name, [])[:1]))
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            continue
        if "$" not in value and (SETTING.fullmatch(name) or name not in state.used):
            yield name, value


def _read_statement(node: Node, state: _ScriptState) -> None:
    """Read a statement and those inside it, in the order of the text."""
    if node.type == "command":
        _read_command(node.children, state)
    elif node.type == "redirected_statement":
        _read_redirected(node, state)
    elif node.type == "declaration_command":
        _read_declaration(node, state)
    elif node.type == "variable_assignment":
        if text_of(node).startswith("model_engine="):
            _read_command([node], state)
        else:
            _assign(node, state)
    elif node.type in _SEQUENCES or node.type in _CONDITIONAL:
        state.branches += node.type in _CONDITIONAL
        if node.type == "ERROR":
            _read_command([child for child in node.children if child.type in _WORDS], state)
        for child in node.named_children:
            _read_statement(child, state)
        state.branches -= node.type in _CONDITIONAL


def _read_redirected(node: Node, state: _ScriptState) -> None:
    """Read a statement with redirections; arguments may stand behind their targets."""
    body, *redirects = node.children
    if body.type == "command":
        _read_command([*body.children, *redirects], state)
    else:
        _read_statement(body, state)
    for redirect in redirects:
        _read_statement(redirect, state)


def _assign(node: Node, state: _ScriptState) -> str:
    """Set a variable, and return its name; an item of an array is not set."""
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None or target.type != "variable_name":
        return ""
    name = text_of(target)
    is_array = value is not None and value.type == "array"
    if value is not None and is_array:
        words = [child for child in value.named_children if child.type != "comment"]
        items = [text for text, _ in fields_of(words, state.scope)]
    else:
        items = [value_of(value, state.scope)]
    before = state.scope.variables.get(name, []) if node.children[1].type == "+=" else []
    joined = [before[0] + items[0]] if before and not is_array else before + items
    state.scope.variables[name] = state.scope.count(joined)
    if state.branches:
        state.conditional[name] = line_of(node)
    return name


def _read_declaration(node: Node, state: _ScriptState) -> None:
    for child in node.named_children:
        name = _assign(child, state) if child.type == "variable_assignment" else text_of(child)
        if node.children[0].type == "export":
            state.exported.add(name)


def _read_command(nodes: list[Node], state: _ScriptState) -> None:
    """Read a command: one that starts verl, or lines that are settings."""
    assigned, words = _split_command(nodes, state)
    if not words:
        return
    line, scope = line_of(words[0]), state.scope
    if text_of(words[0]) in {"source", "."}:
        text = "reads another file, whose variables are unknown here."
        state.problems.add(line, text, breaks=False)
        return
    scope.has_arguments = False
    fields = [(plain(text), line) for text, line in fields_of(words, scope)]
    place = _module_place([text for text, _ in fields])
    if place and state.module:
        state.problems.add(line, "starts verl once more: only the first command is taken.")
    elif place:
        file = fields[place][0].removesuffix(".py")
        state.module = file.lstrip("./").replace("/", ".")
        state.exported.update(assigned)
        _read_arguments(fields[place + 1 :], state)
    elif fields and _OVERRIDE.match(fields[0][0]):
        if state.module:
            text = "settings below the end of the command: bash does not pass them."
            state.problems.add(line, text)
        _read_arguments(fields, state)


def _split_command(nodes: list[Node], state: _ScriptState) -> tuple[list[str], list[Node]]:
    """Return the names that a command sets for itself, and its words without redirections."""
    assigned: list[str] = []
    words: list[Node] = []
    for node in nodes:
        if node.type == "file_redirect":
            targets = [n for n in node.named_children if n.type != "file_descriptor"]
            words += targets[1:]
        elif node.type == "variable_assignment" and not text_of(node).startswith("model_engine="):
            assigned.append(_assign(node, state))
        elif node.type not in _REDIRECTS and node.type != "comment":
            words.append(node)
    return assigned, words


def _module_place(fields: list[str]) -> int:
    """Return the place of verl's module in a command, as `-m MODULE` or as a file; 0 without it."""
    for i, text in enumerate(fields[1:], 1):
        if fields[i - 1] == "-m" and len(text) < 100 and _MODULE.fullmatch(text):
            return i
        if _MODULE_FILE.fullmatch(text) and any(
            re.search("python|torchrun", f) for f in fields[:i]
        ):
            return i
    return 0


def _read_arguments(fields: list[tuple[str, int]], state: _ScriptState) -> None:
    """Read the arguments of verl's module."""
    arguments = _join_lists(fields, state.problems)
    for text, line in arguments:
        option, equals, value = text.partition("=")
        if option in {"--config-name", "-cn"}:
            state.config_name = value if equals else next(arguments, ("", 0))[0]
        elif option in {"--config-path", "-cp"}:
            _ = equals or next(arguments, None)
        elif text.startswith("-"):
            state.problems.add(line, f"the option {option[:80]!r} is not taken over.", breaks=False)
        elif len(text) > MAX_SETTING:
            state.problems.add(
                line, f"a setting of more than {MAX_SETTING:,} characters: left out."
            )
        elif equals or text.startswith("~"):
            state.overrides.append(ScriptSetting(text.strip(), line))
        elif text.strip():
            message = f"{text[:80]!r} is not key=value: verl does not start with it."
            state.problems.add(line, message)
    if state.scope.has_arguments:
        message = 'the script passes its own arguments on ("$@"), which are unknown here.'
        state.problems.add(fields[0][1] if fields else 1, message, breaks=False)
    if len(state.overrides) > MAX_SETTINGS:
        raise DataError(f"more than {MAX_SETTINGS:,} settings.")


def _join_lists(fields: list[tuple[str, int]], problems: ProblemLog) -> Iterator[tuple[str, int]]:
    """Yield the arguments; a list that the shell splits at its blanks is one argument."""
    parts: list[str] = []
    begun = depth = 0
    for text, line in fields:
        if parts and (depth <= 0 or _OVERRIDE.match(text) or len(parts) == 50):
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
