"""Start verl's training with a private cluster of Ray that ends with this process.

`python rehearsal_train.py OVERRIDES...`; REWARDKIT_REHEARSAL_TMP is the temporary folder of the
rehearsal.
"""

import atexit
import ctypes
import functools
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

#: Ray schedules workers for one GPU and 16 cores, whatever the machine has.
CLUSTER_SETTINGS = {
    "address": "local",
    "num_cpus": 16,
    "num_gpus": 1,
    "include_dashboard": False,
    "object_store_memory": 256 << 20,
    "log_to_driver": True,
}

#: verl's actors that train, by release.
RUNNERS = ("TaskRunner", "TaskRunnerV1")

#: prctl's option for the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run `verl.trainer.main_ppo`, whose own call of `ray.init` gets the private settings."""
    finished: list[bool] = []
    atexit.register(leave, finished)  # the first is called last
    # If the rehearsal is killed, the kernel ends this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    # `python -m verl.trainer.main_ppo` imports modules from the working directory; so does this.
    sys.path[0] = str(Path.cwd())
    ray = import_module("ray")
    start = ray.init
    folder = Path(os.environ["REWARDKIT_REHEARSAL_TMP"]) / "ray"

    def init(*_: Any, **kwargs: Any) -> Any:
        # verl's variables for its actors, of which one is this process.
        os.environ.update(kwargs.get("runtime_env", {}).get("env_vars", {}))
        return start(**{**kwargs, **CLUSTER_SETTINGS, "_temp_dir": str(folder)})

    vars(ray)["init"] = init
    import_module("rehearsal_tools").load_tools()
    trainer = import_module("verl.trainer.main_ppo")
    run_here(trainer)
    trainer.main()
    finished.append(True)


def leave(finished: list[bool]) -> None:
    """End a process that has finished at once: Python takes seconds to clear its modules."""
    if finished:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def run_here(trainer: ModuleType) -> None:
    """Make verl's task runner run in this process: another one would import everything again."""
    for name in RUNNERS:
        if actor := vars(trainer).get(name):
            vars(trainer)[name] = SimpleNamespace(
                remote=functools.partial(_local_actor, actor.__ray_metadata__.modified_class)
            )


def _local_actor(actor_class: type[Any]) -> SimpleNamespace:
    actor = actor_class()

    def run(config: Any) -> Any:
        return import_module("ray").put(actor.run(config))

    return SimpleNamespace(run=SimpleNamespace(remote=run))


if __name__ == "__main__":
    main()
