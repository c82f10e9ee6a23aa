"""The licence of every package installed here, and whether we may depend on it: exit 1 if not.

    python tools/licences.py          # in an environment that holds what is to be looked at

Read from the packages' metadata: `License-Expression`, else the classifiers, else `License`. We
depend on these packages and ship none of them, so what Apache-2.0 asks is that no licence reaches
over to rewardkit's own code.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distributions

#: What a licence may say. "weak": its own files stay under it, ours do not come under it.
PERMISSIVE = re.compile(
    r"\b(apache|asl|mit|bsd|0bsd|isc|psf|python software foundation|hpnd|zlib|unlicense|cnri)\b"
    r"|historical permission notice|public domain|cc0",
    re.IGNORECASE,
)
WEAK = re.compile(r"\b(mpl|mozilla public|lgpl|lesser general public)", re.IGNORECASE)
STRONG = re.compile(r"(?<!l)(?<!lesser )\b(a?gpl|general public|sspl|busl|cc-by-nc)", re.IGNORECASE)


def licence(package: Distribution) -> str:
    """What a package says its licence is, in one line; "" if nothing."""
    said = package.metadata
    classifiers = said.get_all("Classifier") or []
    listed = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License :: ")]
    named = [name for name in listed if name != "OSI Approved"]
    text = (said["License"] or "").strip().split("\n")[0][:80]
    return said["License-Expression"] or "; ".join(named) or text


def verdict(text: str) -> str:
    """permissive, weak, or CONFLICT, also where nothing is said; of an `OR` we choose a side."""
    choices = re.split(r"\bOR\b", text)
    if any(PERMISSIVE.search(c) and not WEAK.search(c) and not STRONG.search(c) for c in choices):
        return "permissive"
    weak = any(WEAK.search(choice) and not STRONG.search(choice) for choice in choices)
    return "weak" if weak else "CONFLICT"


def main() -> int:
    found = {package.name: package for package in distributions()}
    rows = sorted((name.lower(), p.version, licence(p)) for name, p in found.items())
    judged = [(verdict(text), *row, text) for *row, text in rows]
    for row in judged:
        print("{:<11} {:<28} {:<16} {}".format(*row))
    bad = [name for said, name, *_ in judged if said == "CONFLICT"]
    print(f"{len(rows)} packages, {len(bad)} in conflict{': ' if bad else ''}{', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
