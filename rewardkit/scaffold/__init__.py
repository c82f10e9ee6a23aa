"""`rewardkit new`: a small package with a dataset or a scorer that passes its own tests.

The package has the same objects as a built-in dataset or scorer, is discovered through the same
entry points, and its tests run the checks of `rewardkit.testing`. The templates are in this folder.
"""

import json
import keyword
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit import registry
from rewardkit.errors import UsageError
from rewardkit.output import atomic_folder

Kind: TypeAlias = Literal["dataset", "scorer"]

#: Longest name, in characters: one path contains it twice.
MAX_NAME_CHARS = 50

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_OWN_FOLDERS = frozenset({"sample", "tests"})

#: Rows of the samples: one of each kind, of which the last is broken.
_OPEN_ROWS = (
    {"id": "1", "question": "What is 7 + 5?", "answer": "12"},
    {"id": "2", "question": "Half of a number is 21. What is the number?", "answer": "42"},
    {"id": "3", "question": "How many minutes are a quarter of an hour?", "answer": "15"},
    {"id": "4", "question": "What is the largest prime?", "answer": ""},
)
_CHOICE_ROWS = (
    {"id": "1", "question": "Which is odd?", "options": ["2", "4", "5", "8"], "answer": "C"},
    {"id": "2", "question": "Which are even?", "options": ["2", "3", "4"], "answer": "AC"},
    {"id": "3", "question": "0 is even.", "options": ["true", "false"], "answer": "A"},
    {"id": "4", "question": "Which is prime?", "options": ["4", "6"], "answer": "E"},
)


def new_package(kind: Kind, name: str, out: Path | None = None, *, scorer: str = "math") -> Path:
    """Write a package and return its folder.

    Args:
        kind: `dataset` or `scorer`.
        name: the name of the dataset or scorer and of the package; its module has `_` for `-`.
        out: the new folder; None for a folder of that name in the working directory.
        scorer: the scorer of a dataset's rows. For `mcq` the rows are choice questions.

    Raises:
        UsageError: the name cannot be used, or the scorer does not exist.
        OutputError: the folder exists or cannot be written.
    """
    check_name(name)
    values: dict[str, Any] = {"kind": kind, "name": name, "module": _module(name)}
    values["scorer"] = ""
    values["title"] = name.replace("-", " ").replace("_", " ").capitalize()
    files = {
        "README.md": "README.md.j2",
        "pyproject.toml": "pyproject.toml.j2",
        "{module}/__init__.py": "init.py.j2",
        "{module}/py.typed": "py.typed.j2",
        "{module}/{kind}.py": f"{kind}.py.j2",
        "tests/test_{module}.py": f"test_{kind}.py.j2",
    }
    if kind == "dataset":
        values |= _dataset_values(scorer)
        files["{module}/{name}.md"] = "card.md.j2"
        files["{module}/sample/{name}/train.jsonl"] = "sample.jsonl.j2"
    return _write_package(
        Path(name) if out is None else out,
        {path.format(**values): _render(template, values) for path, template in files.items()},
    )


def check_name(name: str) -> None:
    """Require that a name is valid, free in rewardkit, and does not hide an installed module.

    Raises:
        UsageError: the name cannot be used; the message says which names can.
    """
    quoted = ascii(name[:MAX_NAME_CHARS])
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UsageError(
            f"{quoted} is not a valid name: use up to {MAX_NAME_CHARS} small letters, digits, and - or _ between them, "
            "a letter first, as in medical-mcq."
        )
    module = _module(name)
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise UsageError(f"{quoted} is a keyword of Python; choose another name.")
    for group in ("datasets", "scorers", "data_sources"):
        for known in registry.known(group):
            if _module(known) == module:
                raise UsageError(
                    f"{quoted} is taken: rewardkit list has {known}; choose another name."
                )
    if module in _OWN_FOLDERS | sys.stdlib_module_names or find_spec(module) is not None:
        raise UsageError(f"{quoted} would hide the installed module {module}; choose another name.")


def _module(name: str) -> str:
    return name.replace("-", "_")


def _dataset_values(scorer: str) -> dict[str, Any]:
    """Return the values for a dataset's templates: scorer, prompt template and sample rows."""
    from rewardkit.preprocess.template import BUILT_IN

    target = registry.target("scorers", scorer)
    if scorer == "auto":
        raise UsageError("--scorer auto: name the scorer that auto should choose for the rows.")
    if scorer in ("code", "function_call", "instructions", "json_schema", "sql"):
        raise UsageError(f"--scorer {scorer}: its golds are not answers; copy a card that has it.")
    templates = [t.name for t in BUILT_IN.values() if t.name != "none" and t.asks_for(scorer)]
    is_choice = scorer == "mcq"
    return {
        "scorer": scorer,
        "target": target,
        "template": (*templates, "none")[0],
        "choices": is_choice,
        "rows": [json.dumps(row) for row in (_CHOICE_ROWS if is_choice else _OPEN_ROWS)],
    }


def _render(template: str, values: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("rewardkit.scaffold", ""),
        autoescape=select_autoescape(),  # only HTML; these are Python, TOML and Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


def _write_package(out: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a new folder, which appears complete or not at all."""
    with atomic_folder(out) as folder:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return out
