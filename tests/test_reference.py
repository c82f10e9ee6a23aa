"""docs/reference agrees with the code, on any terminal."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools/reference.py"


@pytest.fixture(scope="module")
def reference():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("rewardkit_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_agrees_with_the_code(reference):
    stale = [
        path.name
        for path, text in reference.pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"{', '.join(stale)}: run python tools/reference.py"


def test_no_page_is_obsolete(reference):
    assert set(reference.FOLDER.glob("*")) == set(reference.pages())


def test_the_width_of_the_terminal_changes_nothing(reference):
    """The page is written in another interpreter, with 40 columns and without colours."""
    code = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import reference; "
    code += "sys.stdout.buffer.write(reference.cli().encode())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"COLUMNS": "40", "TERM": "dumb", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == reference.cli()


def test_every_row_of_a_table_has_as_many_cells_as_its_head(reference):
    assert reference.table(("x", "y"), [("1", "a|b\n c")]).splitlines()[-1] == r"| 1 | a\|b c |"
    for path, text in reference.pages().items():
        for block in text.split("\n\n"):
            rows = [line for line in block.splitlines() if line.startswith("|")]
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) < 2, (path, block)
