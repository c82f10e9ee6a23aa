"""Start verl's training: `python rehearsal_train.py OVERRIDES...`, with REWARDKIT_REHEARSAL set."""

import ctypes
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

#: prctl's option for the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Write the tiny model, and run `verl.trainer.main_ppo`."""
    # If the rehearsal is killed, the kernel ends this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    # `python -m verl.trainer.main_ppo` imports modules from the working directory; so does this.
    sys.path[0] = str(Path.cwd())
    trainer = import_module("verl.trainer.main_ppo")
    settings = json.loads(os.environ["REWARDKIT_REHEARSAL"])
    write_model = import_module("tiny_model").write_model
    write_model(Path(settings["folder"], "model"), settings["positions"], settings["pixels"])
    run_here(trainer)
    trainer.main()
    import_module("ray").shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # Python takes seconds to clear its modules


def run_here(trainer: Any) -> None:
    """Make verl's task runner run in this process: another one would import everything again."""
    runner = trainer.TaskRunnerV1.__ray_metadata__.modified_class()
    ray = import_module("ray")

    def run(config: Any) -> Any:
        # verl's variables for its actors, of which one is this process.
        os.environ.update(ray.get_runtime_context().runtime_env.get("env_vars", {}))
        return ray.put(runner.run(config))

    actor = SimpleNamespace(run=SimpleNamespace(remote=run))
    trainer.TaskRunnerV1 = SimpleNamespace(remote=lambda: actor)


if __name__ == "__main__":
    main()
