"""How the pages' templates are read."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(package: str) -> Environment:
    """Templates of a package, which may include those of `rewardkit.pages`; texts are escaped."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), PackageLoader("rewardkit.pages", "")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
