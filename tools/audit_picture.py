"""Write docs/audit.svg, the picture of the README, from a real audit of examples/hackable_reward.py.

    python tools/audit_picture.py

The picture is the command's own output at 80 columns; lines between the first findings and the
verdict are left out and counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/audit.svg"
COMMAND = ("audit", "examples/hackable_reward.py")
WIDTH = 80
