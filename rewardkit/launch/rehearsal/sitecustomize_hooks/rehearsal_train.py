"""Start verl's training with Ray as a private cluster that ends with this process.

`python rehearsal_train.py OVERRIDES...`, with the temporary folder of the rehearsal in
REWARDKIT_REHEARSAL_TMP.
"""

import ctypes
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

#: Ray's workers share what the machine has; it believes in one GPU and in enough cores.
PRIVATE = {
    "address": "local",
    "num_cpus": 16,
    "num_gpus": 1,
    "include_dashboard": False,
    "object_store_memory": 256 << 20,
    "log_to_driver": True,
}


#: prctl's number for the signal that a process gets when its parent ends.
_PARENT_ENDS = 1


def main() -> None:
    """Run `verl.trainer.main_ppo`, whose own call of `ray.init` gets the private settings."""
    # A rehearsal that is killed cannot end this process any more: the kernel does.
    ctypes.CDLL(None).prctl(_PARENT_ENDS, int(signal.SIGTERM))
    # Modules beside the user are found, as `python -m verl.trainer.main_ppo` finds them.
    sys.path[0] = str(Path.cwd())
    ray = import_module("ray")
    start = ray.init
    folder = Path(os.environ["REWARDKIT_REHEARSAL_TMP"]) / "ray"

    def init(*_: Any, **kwargs: Any) -> Any:
        return start(**{**kwargs, **PRIVATE, "_temp_dir": str(folder)})

    vars(ray)["init"] = init
    import_module("verl.trainer.main_ppo").main()


if __name__ == "__main__":
    main()
