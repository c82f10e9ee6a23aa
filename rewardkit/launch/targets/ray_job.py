"""`ray-job`: the plan as a job of a running Ray cluster, submitted by `ray job submit`.

Ray uploads what the job needs: the command in `launch.sh`, the recipe's scorer file, and this
rewardkit (as a `py_module`, so that the nodes score with the version that made the plan; its
dependencies are in every verl environment). Ray starts the job in an unpacked copy of
`working_dir`, so parquet files must have absolute paths.

The entrypoint is `bash launch.sh` instead of the command, because `ray job submit` of Ray 2.49 quotes
arguments for Windows (measured; 2.60 quotes for a shell): a Hydra value lost its single quotes.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import rewardkit
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    as_yaml,
    render_template,
    require_absolute_data,
    scorer_files,
    slug,
)


def ray_job(plan: Plan, folder: Path) -> Launch:
    """Return the job's folder, its runtime_env and the command that submits it.

    Raises:
        UsageError: a parquet file's path is relative.
    """
    recipe = plan.recipe
    require_absolute_data(recipe, "a job starts in a folder that Ray unpacks")
    name = f"{slug(recipe.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    files = [
        File(
            "working_dir/launch.sh", render_template("job.sh.j2", plan, wait=False), executable=True
        )
    ]
    files += [File(f"working_dir/{name}", text) for name, text in scorer_files(plan).items()]
    files.append(File("runtime_env.yaml", as_yaml(_runtime_env(plan, folder))))
    detach = ("--no-wait",) if recipe.cluster.detach else ()
    submit = (_ray_program(), "job", "submit", "--address", recipe.cluster.address)
    job = ("--runtime-env", str(folder / "runtime_env.yaml"), "--submission-id", name)
    return Launch(
        files=tuple(files),
        argv=(*submit, *job, *detach, "--", "bash", "launch.sh"),
        next_steps=_next_steps(plan, name),
    )


def _runtime_env(plan: Plan, folder: Path) -> dict[str, object]:
    """Return the runtime_env; its paths are on this machine, where `ray job submit` reads them."""
    env: dict[str, object] = {"working_dir": str(folder / "working_dir")}
    if plan.recipe.reward.scorer != "verl":
        env["py_modules"] = [str(Path(rewardkit.__file__).parent)]
    variables = dict(plan.env)
    if plan.module == DAPO_RECIPE:  # with a working_dir Ray's workers do not import from workdir
        variables.setdefault("PYTHONPATH", plan.recipe.cluster.workdir)
    return env | {"excludes": ["**/__pycache__/"], "env_vars": variables}


def _ray_program() -> str:
    """Return the path of `ray` in this environment, else of the first on the PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("ray", path=path) or "ray"


def _next_steps(plan: Plan, name: str) -> tuple[str, ...]:
    address = f"--address {shell_word(plan.recipe.cluster.address)}"
    expanded = [name for name, value in plan.env.items() if "$" in value]
    steps = [
        *(f"env.{name}: Ray replaces $NAME and ${{NAME}} in its value." for name in expanded),
        f"Follow it: ray job logs --follow {address} {name}",
        f"End it: ray job stop {address} {name}",
    ]
    if not str(plan.get("trainer.default_local_dir", "")).startswith("/"):
        steps.insert(
            0,
            "trainer.default_local_dir is relative: checkpoints would be in Ray's temporary folder "
            "of one node. Set it to a folder that all nodes share.",
        )
    return tuple(steps)
