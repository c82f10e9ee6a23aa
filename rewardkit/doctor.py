"""What a bug report needs, and what decides whether a reward is honoured: the state of a machine.

Nothing heavy is imported: versions come from package metadata, devices from the driver's tools.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rewardkit import __version__
from rewardkit.launch.verl.keys import describe_reward_keys, installed_verl
from rewardkit.redact import Redactor

PACKAGES: Final = (
    "verl",
    "torch",
    "torch-npu",
    "ray",
    "vllm",
    "vllm-ascend",
    "sglang",
    "transformers",
    "datasets",
    "TransferQueue",
    "numpy",
    "pyarrow",
    "huggingface-hub",
    "modelscope",
    "sympy",
    "math-verify",
)

#: Seconds a hub has to answer, and a driver's tool to print.
PATIENCE: Final = 5.0

_MODELSCOPE = "https://www.modelscope.cn"


def examine(*, offline: bool = False) -> dict[str, dict[str, str]]:
    """Sections of facts: `versions`, `verl`, `hubs` (unless offline) and `devices`."""
    facts = {"versions": _versions(), "verl": _verl()}
    if not offline:
        facts["hubs"] = _hubs()
    facts["devices"] = _devices()
    return facts


def _versions() -> dict[str, str]:
    found = {"rewardkit": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _verl() -> dict[str, str]:
    verl = installed_verl()
    if verl is None:
        return {
            "custom reward": "no verl here; 0.9 and later: " + describe_reward_keys("0.9.1"),
            "up to 0.7.0": describe_reward_keys("0.7.0"),
        }
    return {
        "custom reward": f"verl {verl} honours {describe_reward_keys(verl)}",
        "set it with": "rewardkit path NAME --verl",
    }


def _hubs() -> dict[str, str]:
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return {Redactor().text(url): _reach(url) for url in (endpoint, _MODELSCOPE)}


def _reach(url: str) -> str:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, method="HEAD"), timeout=PATIENCE) as answer:  # noqa: S310 - the user's own HF_ENDPOINT
            return f"reachable ({answer.status})"
    except HTTPError as error:
        return f"reachable ({error.code})"
    except (OSError, ValueError, HTTPException) as error:
        return f"not reachable ({getattr(error, 'reason', error)})"


def _devices() -> dict[str, str]:
    gpus = _tool("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    npus = sorted(path.name for path in Path("/dev").glob("davinci[0-9]*"))
    return {
        "GPU": "; ".join(gpus) or "none",
        "NPU": f"{len(npus)} ({', '.join(npus)})" if npus else "none",
        "CPU": f"{os.cpu_count()} cores",
    }


def count_devices(kind: str) -> int:
    """How many devices of a kind (`gpu`, `npu`) this machine has, by its driver; 0 for others."""
    if kind == "gpu":
        return len(_tool("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"))
    return len(list(Path("/dev").glob("davinci[0-9]*"))) if kind == "npu" else 0


def _tool(*command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()
