"""The tutorial is executed: its commands run, its files are written, its output is compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import agrees

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorial-plugin.md"
#: The line above a block, its language and its text; above a file it ends in its name and a colon.
BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+)`[^`]*:$")


class Reader:
    """A reader who follows the page in one shell."""

    def __init__(self, folder):
        self.folder, self.pwd_file, self.output = folder, folder / "pwd", ""
        site, programs = folder / "site", folder / "bin"
        programs.mkdir()
        offline = Path(__file__).with_name("pip_offline.py")
        (programs / "pip").write_text(f'#!/bin/sh\n"{sys.executable}" "{offline}" "{site}" "$@"\n')
        (programs / "pip").chmod(0o755)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = os.environ | {
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }

    def run(self, commands):
        script = f"set -eu\n{commands}\npwd > '{self.pwd_file}'"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        self.folder = Path(self.pwd_file.read_text().strip())
        self.output = done.stdout


def files(blocks):
    """Return (name, text) of the files that the reader writes."""
    return [
        (FILE.search(line)[1], text) for line, kind, text in blocks if kind not in ("bash", "text")
    ]


@pytest.mark.full
def test_a_reader_who_follows_the_page_gets_its_output(tmp_path):
    reader, blocks = Reader(tmp_path), BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(files(blocks)) == 5
    for block in blocks:
        if block[1] == "bash":
            reader.run(block[2])
        elif block[1] == "text":
            assert agrees(block[2], reader.output), (block[2], reader.output)
        else:
            [(name, text)] = files([block])
            (reader.folder / name).write_text(text, encoding="utf-8")
