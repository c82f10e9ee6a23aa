"""`rewardkit guard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_item, print_json, show_import, warn
from rewardkit.cli.shared.options import argument, examples, option

if TYPE_CHECKING:
    from rewardkit.guard.guard import GuardSettings
    from rewardkit.guard.guard_file import GuardTrial

EXAMPLES = examples(
    "rewardkit guard my_reward.py:compute_score --out guarded.py",
    "rewardkit guard my_reward.py:compute_score --rows train.parquet --out guarded.py",
    "rewardkit guard my_reward.py:compute_score --seconds 30 --record records --out guarded.py",
    "python3 -m verl.trainer.main_ppo ... $(rewardkit path guarded.py --verl)",
)


def command(
    reward: Annotated[str, argument("The reward, as my_reward.py:compute_score.")],
    out: Annotated[Path, option("Output Python file, which verl loads.")],
    rows: Annotated[
        Path | None, option("Parquet of verl rows to try the reward on.", metavar="FILE")
    ] = None,
    seconds: Annotated[
        float, opt.seconds_option("Timeout per call, in seconds.", least=0.01)
    ] = 5.0,
    cpu_seconds: Annotated[
        float, opt.seconds_option("CPU time per call, in seconds; 0: no limit.", least=0.0)
    ] = 0.0,
    memory_mb: Annotated[
        int, option("Memory for calls per process, in MiB; 0: no limit.", min=0)
    ] = 8192,
    workers: Annotated[
        int, option("Maximum processes for each process of verl that scores.", min=1)
    ] = 4,
    wrong_score: Annotated[
        float | None, option("Score of a failed call; by default the lowest of a wrong response.")
    ] = None,
    right_score: opt.RightScore = None,
    keys: Annotated[str, option("Further numeric keys of its results, separated by commas.")] = "",
    on_failure: Annotated[
        Literal["stop", "score"], option("When it fails too often: stop the training, or score on.")
    ] = "stop",
    stop_share: Annotated[
        float, option("Share of failed calls above which that happens.", min=0.0, max=1.0)
    ] = 0.5,
    record: Annotated[
        Path | None, option("Also record scores and parts for `rewardkit logs`.", metavar="DIR")
    ] = None,
    settings: opt.Settings = None,
    load_seconds: opt.LoadSeconds = 60.0,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Write a file that runs your reward safely inside verl.

    Calls run in child processes, and each ends at its deadline. A failed call is a wrong answer
    with timeout or error 1.0. Every sample has the same keys, and no NaN passes. A reward that
    fails on all of its first 32 calls, or on more than --stop-share of 500, stops the training.
    The reward is tried first, on a made-up row or on --rows, which shows its keys.
    """
    from rewardkit.guard.guard import GuardSettings
    from rewardkit.guard.guard_file import guard_file_text, secret_variables, trial_rows, try_reward
    from rewardkit.output import atomic, require_not_input, require_suffix
    from rewardkit.registry import with_function

    require_suffix("--out", out, ".py")
    require_not_input(out, Path(reward.partition(":")[0]))

    guard_settings = GuardSettings(
        options=opt.scorer_options(settings),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        memory_mb=memory_mb,
        workers=workers,
        on_failure=on_failure,
        stop_share=stop_share,
        record=str(record.absolute()) if record else "",
        load_seconds=load_seconds,
    )
    reward = with_function(reward)
    with show_import(reward):
        trial, guard_settings = try_reward(
            reward,
            guard_settings,
            trial_rows(rows),
            keys=[name.strip() for name in keys.split(",") if name.strip()],
            wrong_score=wrong_score,
            right_score=right_score,
        )
    with atomic(out, overwrite=overwrite) as temporary:
        temporary.write_text(guard_file_text(reward, trial, guard_settings), encoding="utf-8")
    for failure in trial.failures:
        warn(failure)
    for name, variable in secret_variables(guard_settings.options).items():
        warn(f"{name} holds a secret: {out} reads it from {variable}. Export that where verl runs.")
    _print(reward, trial, guard_settings, out, as_json=as_json)


def _print(
    reward: str, trial: GuardTrial, settings: GuardSettings, out: Path, *, as_json: bool
) -> None:
    if as_json:
        print_json(
            {
                "file": str(out.resolve()),
                "keys": sorted(settings.keys),
                "wrong_score": settings.wrong_score,
                "right_score": settings.right_score,
                "is_async": trial.is_async,
                "calls": trial.calls,
                "failures": list(trial.failures),
                "seconds": trial.seconds,
            }
        )
        return
    from rewardkit.launch.verl.releases import LATEST, installed_verl, reward_key

    kind = "a coroutine function" if trial.is_async else "a function"
    has_time = trial.failure_count < trial.calls
    time = f"; a call took {trial.seconds * 1000:.3g} ms" if has_time else ""
    print_item(
        f"{reward}: {kind}; {trial.failure_count} of {trial.calls} calls of the trial failed{time}."
    )
    is_stopped = settings.on_failure == "stop"
    if is_stopped and trial.failure_count > settings.stop_share * trial.calls:
        typer.echo("At this rate of failures the guard stops the training: fix the reward first.")
    typer.echo(f"Keys of every sample: {', '.join(settings.keys)}.")
    typer.echo(
        f"A call that fails or takes more than {settings.seconds:g} s scores "
        f"{settings.wrong_score:g}."
    )
    if settings.right_score is not None:
        typer.echo(f"acc is 1 from a score of {settings.right_score:g} on.")
    elif trial.rule.sentence:
        typer.echo(f"acc is left out: {trial.rule.sentence}")
    key = reward_key(installed_verl() or LATEST)
    typer.echo(f"{out}: {key}.path={out.resolve()}")
