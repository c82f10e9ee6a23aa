"""Write docs/audit.svg, the picture of the README: a real audit of examples/hackable_reward.py.

    python tools/audit_picture.py

It shows what the command prints at 80 columns: the first findings, and the last lines with the grade.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/audit.svg"
COMMAND = ("audit", "examples/hackable_reward.py")

#: Lines of the output at least before those that the picture leaves out.
FIRST_LINES = 18

STYLES = {r"\bhigh\b": "bold red", r"\bmedium\b": "yellow", r"\bgrade [A-F]\b": "bold red"}


def audit_lines() -> list[str]:
    """Return what the command prints at 80 columns without colours."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "rewardkit", *COMMAND]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.rstrip().splitlines()


def picture_lines(lines: list[str]) -> list[str]:
    """Return the lines that the picture shows: whole findings, how many lines follow, the grade."""
    stop = next(i for i in range(FIRST_LINES, len(lines)) if not lines[i].startswith(" "))
    hidden = f"... {len(lines) - stop - 1} more lines ..."
    return [f"$ rewardkit {' '.join(COMMAND)}", *lines[:stop], hidden, lines[-1]]


def to_svg(lines: list[str]) -> str:
    """Return the lines as a picture of a terminal, which loads no font."""
    console = Console(record=True, width=80, file=StringIO(), force_terminal=True, highlight=False)
    for line in lines:
        text = Text(line)
        for pattern, style in STYLES.items():
            text.highlight_regex(pattern, style)
        if line.startswith("$ "):
            text.stylize("bold")
        console.print(text, soft_wrap=True)
    svg = console.export_svg(title="rewardkit", theme=DIMMED_MONOKAI, unique_id="audit")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(to_svg(picture_lines(audit_lines())), encoding="utf-8")
