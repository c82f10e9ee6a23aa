"""`rewardkit check` of a recipe: everything that is known before a launch."""

from __future__ import annotations

from pathlib import Path

import typer

from rewardkit.cli.shared.console import print_json, warn


def is_recipe(file: Path) -> bool:
    """Return whether a path is a recipe: a .yaml file, or the name of a built-in one."""
    from rewardkit.launch.recipe import built_in

    return file.suffix in {".yaml", ".yml"} or (not file.exists() and str(file) in built_in())


def check_recipe(
    name: str,
    fields: list[str] | None,
    verl: str | None,
    load_seconds: float,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Check a recipe and print the result.

    Args:
        name: the recipe, as `rewardkit train` takes it.
        fields: fields of the recipe to set.
        verl: version of verl; None for the installed one.
        load_seconds: timeout for importing the reward.
        strict: whether warnings are fatal, too.
        as_json: whether to print JSON.
    """
    from rewardkit.cli.shared.preflight import print_preflight, run_preflight
    from rewardkit.cli.shared.requests import read_launch_request
    from rewardkit.launch.request import plan_from_request
    from rewardkit.launch.verl.releases import release_notice

    request = read_launch_request(name, fields, verl_version=verl)
    plan = plan_from_request(request, load_seconds)
    if notice := release_notice(request.verl):
        warn(f"verl {request.verl} {notice}")
    preflight = run_preflight(plan, load_seconds)
    is_fatal = preflight.is_fatal(strict=strict, on_this_machine=False)
    if as_json:
        print_json({"ok": not is_fatal, **vars(preflight), "notes": plan.notes})
    else:
        print_preflight(preflight, err=False)
    if is_fatal:
        raise typer.Exit(1)
