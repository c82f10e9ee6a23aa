"""Start verl's training with a private cluster of Ray that ends with this process.

`python rehearsal_train.py OVERRIDES...`; REWARDKIT_REHEARSAL_TMP is the temporary folder of the
rehearsal.
"""

import ctypes
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
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


#: prctl's option for the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run `verl.trainer.main_ppo`, whose own call of `ray.init` gets the private settings."""
    # If the rehearsal is killed, the kernel ends this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    # `python -m verl.trainer.main_ppo` imports modules from the working directory; so does this.
    sys.path[0] = str(Path.cwd())
    ray = import_module("ray")
    start = ray.init
    folder = Path(os.environ["REWARDKIT_REHEARSAL_TMP"]) / "ray"

    def init(*_: Any, **kwargs: Any) -> Any:
        return start(**{**kwargs, **CLUSTER_SETTINGS, "_temp_dir": str(folder)})

    vars(ray)["init"] = init
    import_module("rehearsal_tools").load_tools()
    import_module("verl.trainer.main_ppo").main()


if __name__ == "__main__":
    main()
