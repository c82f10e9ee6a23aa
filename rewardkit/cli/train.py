"""`rewardkit train`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared.console import print_json, printable, progress, redactor, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import JsonFlag
from rewardkit.cli.shared.preflight import print_preflight, run_preflight, stop_if_fatal
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.rehearsal.rehearse import Rehearsal
    from rewardkit.launch.targets import Launch

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
    checks = {"--strict": strict, "--no-check": no_check}
    if dry_run:
        _refuse_together("--dry-run", {"--rehearse": rehearse, "--out": out, **checks})
    if rehearse:
        _refuse_together("--rehearse", checks)
    asked = _asked(recipe, overrides, fields, variant, sweep, verl_version, from_manifest)
    if dry_run:
        _show(asked, as_json=as_json)
        return
    for one in asked:
        _notes(one.plan)
        if not no_check and not rehearse:
            found = run_preflight(one.plan)
            print_preflight(found, err=True)
            stop_if_fatal(found, strict=strict)
    folders = [out / one.plan.recipe.name if out and sweep else out for one in asked]
    if rehearse:
        _rehearse_all(asked, folders, as_json=as_json)
    else:
        _start_all(asked, folders, as_json=as_json)


def _refuse_together(option: str, others: Mapping[str, object]) -> None:
    """Raise if an option is given beside one that would not look at it."""
    for name, given in others.items():
        if given:
            raise UsageError(f"{name} is not used with {option}: leave it out.")


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
    from rewardkit.launch.recipe import load_tree

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
    from rewardkit.launch.recipe import deep_merge, flatten_verl_section
    from rewardkit.launch.verl.hydra_values import parse_value
    from rewardkit.launch.yaml_text import read_yaml

    tree = flatten_verl_section(tree, "the recipe") if fields else tree
    for setting in fields or ():
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {setting}: write it as FIELD=VALUE.")
        mapping = text.startswith("{")
        part: Any = read_yaml(text, f"--set {name}") if mapping else parse_value(text)
        keys = ["verl", name[5:]] if name.startswith("verl.") else name.split(".")
        for key in reversed(keys):
            part = {key: part}
        tree = deep_merge(tree, part)
    return tree


def plan_of(
    tree: dict[str, Any],
    where: str,
    overrides: list[str],
    variant: str | None = None,
    verl_version: str | None = None,
) -> Asked:
    """The plan of a recipe's tree for the verl that is asked for, or installed, or the newest."""
    from rewardkit.launch.overrides import parse_overrides
    from rewardkit.launch.plan import make_plan
    from rewardkit.launch.recipe import read_recipe
    from rewardkit.launch.secret_values import conceal
    from rewardkit.launch.targets import reward_path
    from rewardkit.launch.verl.keys import LATEST, installed_verl

    verl = verl_version or installed_verl()
    if verl is None:
        warn(f"no verl is installed here: this is for verl {LATEST} (see --verl-version).")
    redactor().learn(tree)  # so that no message shows what the recipe has
    tree, overrides, secrets = conceal(tree, overrides)
    recipe = read_recipe(tree, where, variant)
    release, given = verl or LATEST, parse_overrides(overrides, "the command line")
    path = reward_path(recipe, release)
    plan = make_plan(recipe, release, given, reward_path=path, secrets=secrets)
    return Asked(recipe.model_dump(mode="json"), where, overrides, release, plan)


def _again(path: Path) -> Asked:
    """The run of a manifest; what has changed since is said."""
    from rewardkit.launch.manifest import changed, read_manifest

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
    from rewardkit.launch.secret_values import shell_word

    if as_json:
        print_json([_described(one.plan) for one in asked])
        return
    for one in asked:
        _notes(one.plan)
        plan = one.plan
        typer.echo(f"# {plan.recipe.name}: verl {plan.verl}, target {plan.recipe.cluster.target}")
        for name, value in plan.env.items():
            typer.echo(f"export {name}={shell_word(value)}")
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


def _rehearse_all(asked: list[Asked], folders: list[Path | None], *, as_json: bool) -> None:
    """A few steps of real verl on the CPU; ends with 1 where something was not as it must be."""
    from rewardkit.launch.rehearsal.rehearse import rehearse
    from rewardkit.launch.start import run_folder

    done: list[Rehearsal] = []
    for one, out in zip(asked, folders, strict=True):
        folder = run_folder(f"{one.plan.recipe.name}-rehearsal", out)
        with progress("rehearsing with verl on the CPU") as advance:
            done.append(rehearse(one.plan.arguments, folder=folder, progress=advance))
        if not as_json:
            _say_rehearsal(done[-1])
    if as_json:
        print_json(done if len(done) > 1 else done[0])
    if not all(found.ok for found in done):
        raise typer.Exit(1)


def _say_rehearsal(found: Rehearsal) -> None:
    typer.echo(f"verl {found.verl}, {found.steps} steps in {found.seconds:.0f} s: {found.folder}")
    for check in found.checks:
        typer.echo(printable(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}"))
    for note in found.notes:
        typer.echo(f"not as planned: {note}")


def _start_all(asked: list[Asked], folders: list[Path | None], *, as_json: bool) -> None:
    """Start one run after another; ends with the exit code of the first that fails."""
    started, code = [], 0
    for one, out in zip(asked, folders, strict=True):
        facts = _start(one, out, as_json=as_json)
        started.append(facts)
        code = facts["exit_code"] or 0
        if code:
            break
    if as_json:
        print_json(started)
    if code:
        raise typer.Exit(code)


def _start(asked: Asked, out: Path | None, *, as_json: bool) -> dict[str, Any]:
    """Write the run's folder and execute what can be executed from here; what --json prints."""
    from rewardkit.launch.manifest import manifest_of, write_manifest
    from rewardkit.launch.start import execute, made_folder, run_folder, write_files
    from rewardkit.launch.targets import render

    folder = run_folder(asked.plan.recipe.name, out)
    launch = render(asked.plan, folder)
    manifest = manifest_of(asked.plan, asked.tree, asked.where, asked.overrides)
    code = None
    with made_folder(folder):  # where the program is not there, nothing stays
        write_manifest(manifest, folder / "manifest.json")
        paths = write_files(launch.files, folder)
        for path in paths:
            typer.echo(str(path), err=as_json)
        if launch.argv is not None:
            warn(f"starting; output is kept in {folder / 'console.log'}")
            output = sys.stderr.buffer if as_json else sys.stdout.buffer
            code = execute(launch.argv, launch.env, folder / "console.log", launch.cwd, output)
    _next(launch, code or 0)
    return {
        **_described(asked.plan),
        "folder": folder,
        "files": paths,
        "exit_code": code,
        "next_steps": launch.next_steps,
    }


def _next(launch: Launch, code: int) -> None:
    sys.stdout.flush()
    if code:
        warn(f"error: the run ended with exit code {code}.")
        return
    for line in launch.next_steps:
        warn(f"next: {line}")
