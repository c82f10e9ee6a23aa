"""`rewardkit train`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import activity, echo, print_json, warn
from rewardkit.cli.shared.launch import (
    print_preflight,
    read_launch_request,
    run_preflight,
    stop_if_fatal,
)
from rewardkit.cli.shared.options import (
    argument,
    complete_recipes,
    complete_targets,
    examples,
    option,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.rehearsal.rehearse import Rehearsal
    from rewardkit.launch.request import LaunchRequest

EXAMPLES = examples(
    "rewardkit train qwen2.5-0.5b-ppo-gsm8k --dry-run",
    "rewardkit train my.yaml --verl-version 0.8 --dry-run -- trainer.total_epochs=1",
    "rewardkit train my.yaml --set algorithm=grpo --target slurm --out jobs/grpo",
    "rewardkit train my.yaml --rehearse",
    "rewardkit train my.yaml --sweep --out jobs/ablation",
    "rewardkit train --from runs/my-20261121-101500/manifest.json",
)


def command(
    ctx: typer.Context,
    recipe: Annotated[
        str | None,
        argument(
            "Recipe name, or a .yaml file.", metavar="[RECIPE]", autocompletion=complete_recipes
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        argument(
            "Overrides in verl's own keys; they take precedence.", metavar="[-- KEY=VALUE ...]"
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("Print the command without checking or starting anything.", "--dry-run")
    ] = False,
    rehearse: Annotated[
        bool, option("Run a few steps of real verl on the CPU with a tiny model.", "--rehearse")
    ] = False,
    rehearse_seconds: Annotated[
        float, opt.seconds_option("Time limit of a rehearsal, in seconds.", least=1)
    ] = 900,
    rehearse_call_seconds: Annotated[
        float, opt.seconds_option("Time limit per call of the scorer, in seconds.", least=1)
    ] = 60,
    target: Annotated[
        str | None,
        option(
            "Where the run goes, instead of the recipe's cluster.target: local, ray-job, script, "
            "slurm, kuberay, skypilot, ascend or modelarts.",
            autocompletion=complete_targets,
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        option("Set a field of the recipe. Repeatable.", "--set", metavar="FIELD=VALUE"),
    ] = None,
    variant: Annotated[str | None, option("Start one variant of the recipe's sweep.")] = None,
    sweep: Annotated[
        bool, option("Start all variants of the sweep, one after another.", "--sweep")
    ] = False,
    verl_version: opt.VerlVersion = None,
    strict: Annotated[bool, option("Do not start on warnings either.", "--strict")] = False,
    no_check: Annotated[bool, option("Start without checking first.", "--no-check")] = False,
    load_seconds: opt.LoadSeconds = 60.0,
    out: Annotated[
        Path | None, option("New folder of the run; the default is runs/NAME-TIME.")
    ] = None,
    from_manifest: Annotated[
        Path | None, option("Repeat the run of a manifest.json.", "--from", metavar="MANIFEST")
    ] = None,
    lang: opt.Language = "en",
    as_json: opt.JsonFlag = False,
) -> None:
    """Turn a recipe into a verl launch, check it and start it.

    --target, or the recipe's cluster.target, decides how: local and ray-job runs are started, the others are
    written as files for you to submit. Every run has a folder with a manifest; --from repeats the
    run of a manifest.
    """
    from rewardkit.launch.request import plan_from_request

    if dry_run:
        starting = {"rehearse", "out", "no_check", "strict"}
        opt.require_unused(ctx, "--dry-run", set(ctx.params) - starting)
    if rehearse:
        opt.require_unused(ctx, "--rehearse", set(ctx.params) - {"strict"})
    opt.require_companion(ctx, "--rehearse", rehearse, "rehearse_seconds", "rehearse_call_seconds")
    if from_manifest:
        if any((recipe, overrides, fields, target, variant, sweep, verl_version)):
            raise UsageError(
                "--from repeats a run unchanged: leave the recipe and other settings out."
            )
        requests, plans = _repeat(from_manifest, load_seconds)
    else:
        if target is not None:
            fields = [*(fields or ()), f"cluster.target={target}"]
        requests = _requests(recipe, overrides, fields, variant, sweep, verl_version)
        plans = [plan_from_request(request, load_seconds) for request in requests]
    if dry_run:
        _print_commands(plans, as_json=as_json)
        return
    for plan in plans:
        _check(plan, load_seconds, strict=strict, no_check=no_check, rehearse=rehearse, lang=lang)
    folders = [out / plan.recipe.name if out and sweep else out for plan in plans]
    if rehearse:
        limits = {"seconds": rehearse_seconds, "call_seconds": rehearse_call_seconds}
        _rehearse_all(plans, folders, as_json=as_json, **limits)
    else:
        _start_all(requests, plans, folders, as_json=as_json)


def _requests(
    recipe: str | None,
    overrides: list[str] | None,
    fields: list[str] | None,
    variant: str | None,
    sweep: bool,
    verl_version: str | None,
) -> list[LaunchRequest]:
    """Read the request; in a sweep, one for each variant."""
    from rewardkit.launch.request import sweep_variants

    if recipe is None:
        raise UsageError("name a recipe (rewardkit recipes list), or --from a manifest.")
    if sweep and variant:
        raise UsageError("--sweep and --variant exclude each other.")
    request = read_launch_request(recipe, fields, overrides, verl_version)
    variants = sweep_variants(request) if sweep else [variant]
    return [replace(request, variant=name) for name in variants]


def _repeat(path: Path, load_seconds: float) -> tuple[list[LaunchRequest], list[Plan]]:
    """Plan an earlier run again, and report what has changed since."""
    from rewardkit.launch.manifest import changes_since, read_manifest, request_of_manifest
    from rewardkit.launch.request import plan_from_request

    manifest = read_manifest(path)
    if manifest.folder != str(Path.cwd()):
        raise UsageError(f"{path}: the run was started in {manifest.folder}; go there first.")
    request = request_of_manifest(manifest)
    plan = plan_from_request(request, load_seconds)
    for line in changes_since(manifest, plan):
        warn(f"changed since {manifest.created}: {line}")
    return [request], [plan]


def _check(
    plan: Plan, load_seconds: float, *, strict: bool, no_check: bool, rehearse: bool, lang: str
) -> None:
    """Check a plan; only its rows and its scorer before a rehearsal."""
    if plan.missing and (no_check or rehearse):  # else the preflight says so
        verb = "is" if len(plan.missing) == 1 else "are"
        raise UsageError(
            f"{plan.recipe.name}: {', '.join(plan.missing)} {verb} ???: put the value in the "
            "recipe, or pass it after `--`."
        )
    _print_notes(plan)
    if not no_check:
        preflight = run_preflight(plan, load_seconds, rehearse=rehearse)
        subject = "rows and scorer" if rehearse else "preflight"
        print_preflight(preflight, err=True, lang=lang, subject=subject)
        stop_if_fatal(preflight, strict=strict)


def _print_notes(plan: Plan) -> None:
    for note in plan.notes:
        warn(f"{note.kind}: {note}")


def _print_commands(plans: list[Plan], *, as_json: bool) -> None:
    """Print the commands without starting them."""
    from rewardkit.launch.secret_values import shell_word

    if as_json:
        print_json([_summary(plan) for plan in plans])
        return
    for plan in plans:
        _print_notes(plan)
        echo(f"# {plan.recipe.name}: verl {plan.verl}, target {plan.recipe.cluster.target}")
        for name, value in plan.env.items():
            typer.echo(f"export {name}={shell_word(value)}")
        typer.echo(plan.shell_command())


def _summary(plan: Plan) -> dict[str, Any]:
    return {
        "recipe": plan.recipe.name,
        "verl": plan.verl,
        "target": plan.recipe.cluster.target,
        "command": plan.command(),
        "env": plan.env,
        "notes": plan.notes,
    }


def _rehearse_all(
    plans: list[Plan], folders: list[Path | None], *, as_json: bool, **limits: Any
) -> None:
    """Run a few steps of real verl on the CPU; exit with 1 if a check fails."""
    from rewardkit.launch.rehearsal.rehearse import rehearse
    from rewardkit.launch.start import run_folder

    rehearsals: list[Rehearsal] = []
    for plan, out in zip(plans, folders, strict=True):
        folder = run_folder(f"{plan.recipe.name}-rehearsal", out)
        with activity("rehearsing with verl on the CPU") as show:
            result = rehearse(plan.local_arguments(), folder=folder, progress=show, **limits)
        rehearsals.append(result)
        if not as_json:
            _print_rehearsal(result)
    if as_json:
        print_json(rehearsals if len(rehearsals) > 1 else rehearsals[0])
    if not all(rehearsal.ok for rehearsal in rehearsals):
        raise typer.Exit(1)


def _print_rehearsal(rehearsal: Rehearsal) -> None:
    seconds = f"{rehearsal.seconds:.0f} s"
    if differences := len(rehearsal.notes) + len(rehearsal.not_rehearsed):
        seconds += f", not as planned in {differences} point{'s' if differences > 1 else ''}"
    echo(f"verl {rehearsal.verl}, {rehearsal.steps} steps in {seconds}: {rehearsal.folder}")
    for check in rehearsal.checks:
        echo(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
    for note in rehearsal.notes:
        echo(f"not as planned: {note}")
    for part in rehearsal.not_rehearsed:
        echo(f"not rehearsed: {part}")


def _start_all(
    requests: list[LaunchRequest], plans: list[Plan], folders: list[Path | None], *, as_json: bool
) -> None:
    """Start the runs one after another; exit with the code of the first that fails."""
    results, code = [], 0
    for request, plan, out in zip(requests, plans, folders, strict=True):
        results.append(_start(request, plan, out, as_json=as_json))
        if code := results[-1]["exit_code"] or 0:
            break
    if as_json:
        print_json(results)
    if code:
        raise typer.Exit(code)


def _start(
    request: LaunchRequest, plan: Plan, out: Path | None, *, as_json: bool
) -> dict[str, Any]:
    """Write the run's folder, and execute its command if it runs here; return what --json prints."""
    from rewardkit.launch.manifest import manifest_of, write_manifest
    from rewardkit.launch.start import execute, new_folder, run_folder, write_files
    from rewardkit.launch.targets import render

    folder = run_folder(plan.recipe.name, out)
    launch = render(plan, folder)
    code = None
    with new_folder(folder):  # removed again if the program does not start
        write_manifest(manifest_of(plan, request), folder / "manifest.json")
        paths = write_files(launch.files, folder)
        for path in paths:
            typer.echo(str(path), err=as_json)
        if launch.argv is not None:
            warn(f"starting; output is written to {folder / 'console.log'}")
            output = sys.stderr.buffer if as_json else sys.stdout.buffer
            code = execute(launch.argv, launch.env, folder / "console.log", launch.cwd, output)
    sys.stdout.flush()
    if code:
        warn(f"error: the run ended with exit code {code}.")
    for line in () if code else launch.next_steps:
        warn(f"next: {line}")
    return {
        **_summary(plan),
        "folder": folder,
        "files": paths,
        "exit_code": code,
        "next_steps": launch.next_steps,
    }
