"""List the licence of every installed package, and exit with 1 if we may not depend on one.

    python tools/licences.py          # in the environment to check

Licences come from the packages' metadata: `License-Expression`, else the classifiers, else `License`.
We depend on these packages and do not ship them, so Apache-2.0 only requires that no licence extends to
rewardkit's own code.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distributions

#: Words of licences that we accept, that only cover their own files ("weak"), and that conflict.
PERMISSIVE = re.compile(
    r"\b(apache|asl|mit|bsd|0bsd|isc|psf|python software foundation|hpnd|zlib|unlicense|cnri)\b"
    r"|historical permission notice|public domain|cc0",
    re.IGNORECASE,
)
WEAK = re.compile(r"\b(mpl|mozilla public|lgpl|lesser general public)", re.IGNORECASE)
STRONG = re.compile(r"(?<!l)(?<!lesser )\b(a?gpl|general public|sspl|busl|cc-by-nc)", re.IGNORECASE)


def licence(package: Distribution) -> str:
    """Return the licence in a package's metadata as one line; "" if it has none."""
    metadata = package.metadata
    classifiers = metadata.get_all("Classifier") or []
    licences = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License :: ")]
    names = [name for name in licences if name != "OSI Approved"]
    text = (metadata["License"] or "").strip().split("\n")[0][:80]
    return metadata["License-Expression"] or "; ".join(names) or text


def verdict(text: str) -> str:
    """Return permissive, weak or CONFLICT (also without a licence); the best side of an `OR` counts."""
    choices = re.split(r"\bOR\b", text)
    if any(PERMISSIVE.search(c) and not WEAK.search(c) and not STRONG.search(c) for c in choices):
        return "permissive"
    weak = any(WEAK.search(choice) and not STRONG.search(choice) for choice in choices)
    return "weak" if weak else "CONFLICT"


def main() -> int:
    packages = {package.name: package for package in distributions()}
    licences = sorted((name.lower(), p.version, licence(p)) for name, p in packages.items())
    rows = [(verdict(text), *row, text) for *row, text in licences]
    for row in rows:
        print("{:<11} {:<28} {:<16} {}".format(*row))
    conflicts = [name for kind, name, *_ in rows if kind == "CONFLICT"]
    print(
        f"{len(rows)} packages, {len(conflicts)} in conflict{': ' if conflicts else ''}{', '.join(conflicts)}"
    )
    return 1 if conflicts else 0


if __name__ == "__main__":
    raise SystemExit(main())
