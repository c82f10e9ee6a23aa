"""Checks of the HTML page that a command writes with --html."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def require_html_path(
    html: Path | None,
    *,
    overwrite: bool,
    inputs: Iterable[Path] = (),
    scorer: str | None = None,
    **outputs: Path | None,
) -> None:
    """Raise an error if a page cannot be written, before the command does its work.

    Args:
        html: the page; without one only the other outputs are compared with the inputs.
        overwrite: whether the page may exist.
        inputs: files that the command reads.
        scorer: the scorer, which may be a file of the user's.
        outputs: other files that it writes, by option.

    Raises:
        OutputError: the page exists.
        UsageError: the page is one of the other files, or an output is an input.
    """
    from rewardkit.output import require_absent, require_different, require_not_input

    sources = [*inputs, *([Path(scorer.partition(":")[0])] if scorer else [])]
    if html is not None:
        require_absent(html, overwrite=overwrite)
        require_different(html=html, **outputs)
    for output in (html, *outputs.values()):
        require_not_input(output, *sources)
