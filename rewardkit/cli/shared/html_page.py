"""Checks of the HTML page that a command writes with --html."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def require_html_path(
    html: Path | None, *, overwrite: bool, inputs: Iterable[Path] = (), **outputs: Path | None
) -> None:
    """Raise an error if a page cannot be written, before the command does its work.

    Args:
        html: the page; nothing is checked without one.
        overwrite: whether the page may exist.
        inputs: files that the command reads.
        outputs: other files that it writes, by option.

    Raises:
        OutputError: the page exists.
        UsageError: the page is one of the other files.
    """
    from rewardkit.output import require_absent, require_different, require_not_input

    if html is None:
        return
    require_absent(html, overwrite=overwrite)
    require_different(html=html, **outputs)
    for file in inputs:
        require_not_input(html, file)
