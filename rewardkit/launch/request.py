"""A request for a run: a recipe, what the command line changes in it, and a release of verl."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import Plan, make_plan
from rewardkit.launch.recipe import deep_merge, flatten_verl_section, load_tree, read_recipe
from rewardkit.launch.secret_values import conceal_secrets
from rewardkit.launch.verl.hydra_values import parse_value
from rewardkit.launch.verl.releases import LATEST, installed_verl
from rewardkit.registry import SCORERS, known
from rewardkit.strict_yaml import read_yaml


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """A run that the user requests. All fields but `secrets` have marks (`<secret:NAME>`) for secrets.

    `tree` is the recipe's YAML with the `fields` that the command line sets; `secrets` has the values of the
    secrets by the names of their variables.
    """

    tree: Mapping[str, Any]
    where: str
    fields: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    verl: str = LATEST
    variant: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_request(
    name: str, *, fields: Iterable[str] = (), overrides: Iterable[str] = (), verl: str | None = None
) -> LaunchRequest:
    """Read a built-in recipe or a YAML file, and what the command line changes in it.

    `fields` are fields of the recipe as `FIELD=VALUE`, dotted for nested ones; `overrides` are verl's keys as
    `key=value`. The release is by default the installed one, or the newest we know.
    """
    fields, tree = tuple(fields), load_tree(name)
    for setting in fields:
        tree = _set_field(tree, setting)
    tree, marked, secrets = conceal_secrets(tree, list(overrides))
    return LaunchRequest(
        tree=tree,
        where=name,
        fields=tuple(setting.partition("=")[0] for setting in fields),
        overrides=tuple(marked),
        verl=verl or installed_verl() or LATEST,
        secrets=secrets,
    )


def _set_field(tree: Mapping[str, Any], setting: str) -> dict[str, Any]:
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise UsageError(f"--set {setting}: write it as FIELD=VALUE.")
    try:
        part = read_yaml(text, f"--set {name}") if text.startswith("{") else parse_value(text)
    except DataError as error:
        raise UsageError(str(error)) from error
    keys = ["verl", name[5:]] if name.startswith("verl.") else name.split(".")
    for key in reversed(keys):
        part = {key: part}
    return deep_merge(flatten_verl_section(tree, "the recipe"), part)


def sweep_variants(request: LaunchRequest) -> list[str]:
    """Return the names of a recipe's variants."""
    names = list(request.tree.get("sweep") or {})
    if not names:
        raise UsageError(f"{request.where} has no variants under `sweep:`.")
    return names


def plan_from_request(request: LaunchRequest, load_seconds: float = 60.0) -> Plan:
    """Plan a run: read the request's recipe, compute its settings, translate them to the release.

    `load_seconds` is the timeout for importing a scorer of another package, to check its options.
    """
    recipe = read_recipe(request.tree, request.where, request.variant, request.fields)
    if recipe.reward.scorer in known("scorers").keys() - SCORERS.keys():
        from rewardkit.scorers.isolated import require_scorer_loads

        require_scorer_loads(recipe.reward.scorer, recipe.reward.options, load_seconds)
    overrides = parse_overrides(request.overrides, "the command line")
    if recipe.reward.guard is not None:
        from rewardkit.launch.reward_guard import guard_reward

        recipe = guard_reward(recipe, recipe.reward.guard, load_seconds, request.secrets)
    return make_plan(recipe, request.verl, overrides, secrets=request.secrets)
