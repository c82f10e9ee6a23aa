"""What commands show on stderr while they work."""

from __future__ import annotations

import io
import sys

import pytest

from rewardkit.cli.shared.console import activity


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("stderr", [Terminal(), io.StringIO()])
def test_an_activity_is_shown_on_a_terminal_only_and_without_control_characters(
    monkeypatch, stderr
):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stderr)
    with activity("rehearsing") as show:
        show("reading the rows\a")
    text = stderr.getvalue()
    assert ("rehearsing: reading the rows\\x07" in text) == stderr.isatty()
    assert stderr.isatty() or text == ""
