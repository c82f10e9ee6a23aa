"""Say what verl's own configuration makes of overrides: JSON in, JSON out. Imports Hydra only.

The request is `{"name": ..., "overrides": [...]}` on stdin; the answer, the last line of stdout,
has `config` (dotted key -> value, interpolations resolved) or `error`.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    hydra, omegaconf = import_module("hydra"), import_module("omegaconf")
    errors = (
        import_module("hydra.errors").HydraException,
        import_module("omegaconf.errors").OmegaConfBaseException,
    )
    spec = find_spec("verl")  # found, not imported: that would take torch and Ray along
    places = spec.submodule_search_locations if spec else None
    folder = Path(next(iter(places or ["verl"]))) / "trainer" / "config"
    answer: dict[str, Any] = {}
    try:
        with hydra.initialize_config_dir(config_dir=str(folder), version_base=None):
            config = hydra.compose(request["name"], overrides=request["overrides"])
        plain = omegaconf.OmegaConf.to_container(config, resolve=True)
    except errors as error:
        answer["error"] = " ".join(str(error).split())
    else:
        answer["config"] = dict(flat(plain))
    sys.stdout.write("\n" + json.dumps(answer, default=str) + "\n")


def flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as dotted keys; an empty one is a value, what must still be set is None."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", None if value == "???" else value


if __name__ == "__main__":
    main()
