"""`ray-job`: the plan as a job of a Ray cluster that runs already, sent by `ray job submit`.

The job takes along what it needs: the command in `launch.sh`, the recipe's own scorer file, and
this rewardkit (as a `py_module`, so that the nodes score with the version that made the plan;
what it needs itself is in every verl environment). Ray starts the job in an unpacked copy of
`working_dir`, which is why parquet files must have absolute paths.

The entrypoint is `bash launch.sh` and not the command: up to some release after 2.49 `ray job
submit` joins it with Windows' quoting, which a shell then reads (measured; 2.60 quotes for a
shell), and a Hydra value in single quotes loses them.
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
    check_absolute,
    filled,
    reward_text,
    slug,
)


def launch(plan: Plan, folder: Path) -> Launch:
    """The job's folder, its runtime_env and the submission.

    Raises:
        UsageError: a parquet file's path is relative.
    """
    recipe = plan.recipe
    check_absolute(recipe, "a job starts in a folder that Ray unpacks")
    name = f"{slug(recipe.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    files = [File("working_dir/launch.sh", filled("job.sh.j2", plan, wait=False), executable=True)]
    if (scorer := reward_text(plan)) is not None:
        files.append(File("working_dir/reward.py", scorer))
    files.append(File("runtime_env.yaml", as_yaml(_runtime_env(plan, folder))))
    detach = ("--no-wait",) if recipe.cluster.detach else ()
    submit = (_ray(), "job", "submit", "--address", recipe.cluster.address)
    job = ("--runtime-env", str(folder / "runtime_env.yaml"), "--submission-id", name)
    return Launch(
        files=tuple(files),
        argv=(*submit, *job, *detach, "--", "bash", "launch.sh"),
        env={},
        next_steps=_next_steps(plan, name),
    )


def _runtime_env(plan: Plan, folder: Path) -> dict[str, object]:
    """What Ray uploads; the paths are of this machine, where `ray job submit` reads them."""
    env: dict[str, object] = {"working_dir": str(folder / "working_dir")}
    if plan.recipe.reward.scorer != "verl":
        env["py_modules"] = [str(Path(rewardkit.__file__).parent)]
    variables = dict(plan.env)
    if (
        plan.module == DAPO_RECIPE
    ):  # with a working_dir Ray's workers do not see the driver's folder
        variables.setdefault("PYTHONPATH", plan.recipe.cluster.workdir)
    return env | {"excludes": ["**/__pycache__/"], "env_vars": variables}


def _ray() -> str:
    """The `ray` of this environment, else the first on the PATH."""
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
            "trainer.default_local_dir is relative: checkpoints would lie in Ray's temporary folder "
            "of one node; set it to a folder that every node sees.",
        )
    return tuple(steps)
