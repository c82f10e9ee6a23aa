"""`rewardkit train`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli import _preflight
from rewardkit.cli._common import JsonFlag, examples, print_json, printable, progress, warn
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.runner.plan import Plan
    from rewardkit.runner.rehearse import Rehearsal
    from rewardkit.runner.targets import Launch

EXAMPLES = examples(
    "rewardkit train qwen2.5-0.5b-ppo-gsm8k --dry-run",
    "rewardkit train my.yaml --verl-version 0.8 --dry-run -- trainer.total_epochs=1",
    "rewardkit train my.yaml --set algorithm=grpo --set cluster.target=slurm --out jobs/grpo",
    "rewardkit train my.yaml --rehearse",
    "rewardkit train my.yaml --sweep --out jobs/ablation",
    "rewardkit train --from runs/my-20261121-101500/manifest.json",
)

RecipeName = Annotated[
    str | None, typer.Argument(metavar="[RECIPE]", help="A recipe's name, or a .yaml of yours.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- KEY=VALUE ...]", help="verl's own keys; they win over all else."),
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="A field of the recipe. Repeatable."),
]
VerlVersion = Annotated[
    str | None, typer.Option(help="Plan for this verl instead of the installed one.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings stop the run too.")]


@dataclass(frozen=True)
class Asked:
    """A recipe as the command line wants it.

    Attributes:
        tree: the recipe's YAML with --set and --variant in it.
        where: its file.
        overrides: verl's keys, as they were written.
        verl: the release.
        plan: of it all.
    """

    tree: dict[str, Any]
    where: str
    overrides: list[str]
    verl: str
    plan: Plan


def command(
    recipe: RecipeName = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command and check nothing.")
    ] = False,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Run real verl here on the CPU, with a tiny model.")
    ] = False,
    fields: Fields = None,
    variant: Annotated[str | None, typer.Option(help="One variant of the recipe's sweep.")] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Every variant, one after another.")
    ] = False,
    verl_version: VerlVersion = None,
    strict: Strict = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Start without looking for mistakes first.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run's new folder; runs/NAME-TIME if not said.")
    ] = None,
    from_manifest: Annotated[
        Path | None, typer.Option("--from", metavar="MANIFEST", help="Repeat a run.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Turn a recipe into a launch of verl, look for mistakes, and start it.

    The target of the recipe's cluster says how: local and ray-job are executed, the others are
    written as files to be submitted. Every run has a folder with a manifest, from which --from
    repeats it.
    """
    asked = _asked(recipe, overrides, fields, variant, sweep, verl_version, from_manifest)
    if dry_run:
        _show(asked, as_json=as_json)
        return
    for one in asked:
        _notes(one.plan)
        if not no_check and not rehearse:
            found = _preflight.look(one.plan)
            _preflight.say(found, err=True)
            _preflight.stop_if_fatal(found, strict=strict)
    for one in asked:
        if rehearse:
            _rehearse(one, out, as_json=as_json)
            continue
        code = _start(one, out / one.plan.recipe.name if out and sweep else out)
        if code:
            raise typer.Exit(code)


def _asked(
    recipe: str | None,
    overrides: list[str] | None,
    fields: list[str] | None,
    variant: str | None,
    sweep: bool,
    verl_version: str | None,
    from_manifest: Path | None,
) -> list[Asked]:
    """The runs that are asked for; more than one in a sweep."""
    from rewardkit.runner.recipe import load_tree

    if from_manifest:
        given = (recipe, overrides, fields, variant, sweep, verl_version)
        if any(given):
            raise UsageError("--from repeats a run as it was: no recipe or setting beside it.")
        return [_again(from_manifest)]
    if recipe is None:
        raise UsageError("name a recipe (rewardkit recipes list), or --from a manifest.")
    if sweep and variant:
        raise UsageError("--sweep and --variant exclude each other.")
    tree = set_fields(load_tree(recipe), fields)
    variants = list(tree.get("sweep") or {}) if sweep else [variant]
    if not variants:
        raise UsageError(f"{recipe} has no sweep: of variants, under `sweep:`.")
    return [plan_of(tree, recipe, overrides or [], name, verl_version) for name in variants]


def set_fields(tree: dict[str, Any], fields: list[str] | None) -> dict[str, Any]:
    """A recipe's tree with `--set FIELD=VALUE` laid over it; the field may be dotted."""
    from rewardkit.runner.hydra_text import parsed
    from rewardkit.runner.recipe import dotted, laid_over
    from rewardkit.runner.yaml_text import read_yaml

    tree = dotted(tree, "the recipe") if fields else tree
    for setting in fields or ():
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {setting}: write it as FIELD=VALUE.")
        mapping = text.startswith("{")
        part: Any = read_yaml(text, f"--set {name}") if mapping else parsed(text)
        keys = ["verl", name[5:]] if name.startswith("verl.") else name.split(".")
        for key in reversed(keys):
            part = {key: part}
        tree = laid_over(tree, part)
    return tree


def plan_of(
    tree: dict[str, Any],
    where: str,
    overrides: list[str],
    variant: str | None = None,
    verl_version: str | None = None,
) -> Asked:
    """The plan of a recipe's tree for the verl that is asked for, or installed, or the newest."""
    from rewardkit.runner.overrides import parse_overrides
    from rewardkit.runner.plan import make_plan
    from rewardkit.runner.recipe import read_recipe
    from rewardkit.runner.targets import reward_path
    from rewardkit.runner.verl_keys import LATEST, installed_verl

    verl = verl_version or installed_verl()
    if verl is None:
        warn(f"no verl is installed here: this is for verl {LATEST} (see --verl-version).")
    recipe = read_recipe(tree, where, variant)
    release, given = verl or LATEST, parse_overrides(overrides, "the command line")
    plan = make_plan(recipe, release, given, reward_path=reward_path(recipe, release))
    return Asked(recipe.model_dump(mode="json"), where, overrides, release, plan)


def _again(path: Path) -> Asked:
    """The run of a manifest; what has changed since is said."""
    from rewardkit.runner.manifest import changed, read_manifest

    manifest = read_manifest(path)
    if manifest.folder != str(Path.cwd()):
        raise UsageError(f"{path}: the run was started in {manifest.folder}; go there first.")
    asked = plan_of(manifest.tree, manifest.where, manifest.overrides, None, manifest.verl)
    for line in changed(manifest, asked.plan):
        warn(f"changed since {manifest.created}: {line}")
    return asked


def _notes(plan: Plan) -> None:
    for note in plan.notes:
        warn(f"{note.kind}: {note}")


def _show(asked: list[Asked], *, as_json: bool) -> None:
    """The commands, and nothing else."""
    if as_json:
        print_json([_described(one.plan) for one in asked])
        return
    for one in asked:
        _notes(one.plan)
        plan = one.plan
        typer.echo(f"# {plan.recipe.name}: verl {plan.verl}, target {plan.recipe.cluster.target}")
        for name, value in plan.env.items():
            typer.echo(f"export {name}={shlex.quote(value)}")
        typer.echo(plan.shown())


def _described(plan: Plan) -> dict[str, Any]:
    return {
        "recipe": plan.recipe.name,
        "verl": plan.verl,
        "target": plan.recipe.cluster.target,
        "command": plan.command(),
        "env": plan.env,
        "notes": plan.notes,
    }


def _rehearse(asked: Asked, out: Path | None, *, as_json: bool) -> None:
    """A few steps of real verl on the CPU; ends with 1 where something was not as it must be."""
    from rewardkit.runner.launch import new_folder
    from rewardkit.runner.rehearse import rehearse

    folder = new_folder(f"{asked.plan.recipe.name}-rehearsal", out)
    with progress("rehearsing with verl on the CPU") as advance:
        found = rehearse(asked.plan.arguments, folder=folder, progress=advance)
    if as_json:
        print_json(found)
    else:
        _say_rehearsal(found)
    if not found.ok:
        raise typer.Exit(1)


def _say_rehearsal(found: Rehearsal) -> None:
    typer.echo(f"verl {found.verl}, {found.steps} steps in {found.seconds:.0f} s: {found.folder}")
    for check in found.checks:
        typer.echo(printable(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}"))
    for note in found.notes:
        typer.echo(f"not as planned: {note}")


def _start(asked: Asked, out: Path | None) -> int:
    """Write the run's folder and execute what can be executed from here; its exit code."""
    from rewardkit.runner.launch import execute, new_folder, write_files
    from rewardkit.runner.manifest import manifest_of, write_manifest
    from rewardkit.runner.targets import render

    folder = new_folder(asked.plan.recipe.name, out)
    launch = render(asked.plan, folder)
    write_manifest(
        manifest_of(asked.plan, asked.tree, asked.where, asked.overrides), folder / "manifest.json"
    )
    for path in write_files(launch.files, folder):
        typer.echo(str(path))
    code = 0
    if launch.argv is not None:
        warn(f"starting; output is kept in {folder / 'console.log'}")
        code = execute(launch.argv, launch.env, folder / "console.log", launch.cwd)
    _next(launch, code)
    return code


def _next(launch: Launch, code: int) -> None:
    sys.stdout.flush()
    if code:
        warn(f"error: the run ended with exit code {code}.")
        return
    for line in launch.next_steps:
        warn(f"next: {line}")
