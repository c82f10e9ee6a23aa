"""Copy the Markdown pages for a site builder: `python tools/docs_site.py`, then `zensical build --strict`.

mkdocs.yml reads the output, build/docs. It has the pages at their paths in the repository, so that links
between them work, and the files that they link to. Front matter of data cards is left out, because a
builder would read it as its own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build/docs"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield the pages of the repository."""
    for pattern in ("*.md", "docs/**/*.md", "data_cards/*.md", "benchmarks/*.md"):
        yield from sorted(ROOT.glob(pattern))


def files() -> set[Path]:
    """Return the pages and the files that they link to."""
    paths = set(pages())
    for page in pages():
        targets = (page.parent / link for link in LINK.findall(page.read_text(encoding="utf-8")))
        paths |= {target.resolve() for target in targets if target.is_file()}
    return paths


def main() -> None:
    """Replace build/docs."""
    shutil.rmtree(OUT, ignore_errors=True)
    for file in sorted(files()):
        copy = OUT / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        copy.write_text(FRONT.sub("", text) if file.suffix == ".md" else text, encoding="utf-8")


if __name__ == "__main__":
    main()
