"""What is known of GPUs and NPUs: their memory, Ray's names, CPUs beside them, and how many are here."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: Memory in GiB per device as verl counts devices (an Atlas A3 card counts as two).
MEMORY_GIB: Mapping[str, int] = {
    "h200": 141,
    "h100": 80,
    "h800": 80,
    "h20": 96,
    "a800": 80,
    "l40s": 48,
    "l40": 48,
    "l20": 48,
    "a6000": 48,
    "4090": 24,
    "3090": 24,
    "800t a2": 64,
    "800t a3": 64,
    "910c": 64,
    "910b": 64,
}

#: Ray's name of a device as a resource; Ray counts CPUs by itself.
RAY_RESOURCES: Mapping[str, str] = {"gpu": "GPU", "npu": "NPU", "cpu": ""}

#: Environment variables that choose a node's network interface for collective communication.
INTERFACE_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "gpu": ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
    "npu": ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
    "cpu": ("GLOO_SOCKET_IFNAME",),
}

#: Timeout of a driver's tool, in seconds.
TOOL_TIMEOUT_SECONDS = 5.0


def count_devices(kind: str) -> int:
    """Count the devices of a kind (`gpu`, `npu`) on this machine; 0 for any other kind."""
    if kind == "gpu":
        return len(_nvidia_smi("name"))
    return len(_npu_names()) if kind == "npu" else 0


def describe_devices() -> dict[str, str]:
    """Return this machine's GPUs (name and memory), NPUs and CPU cores, as text."""
    npus = _npu_names()
    return {
        "GPU": "; ".join(_nvidia_smi("name,memory.total")) or "none",
        "NPU": f"{len(npus)} ({', '.join(npus)})" if npus else "none",
        "CPU": f"{os.cpu_count()} cores",
    }


def _npu_names() -> list[str]:
    return sorted(path.name for path in Path("/dev").glob("davinci[0-9]*"))


def _nvidia_smi(columns: str) -> list[str]:
    """Return a line for each GPU; none where the driver's tool is missing or fails."""
    command = ("nvidia-smi", f"--query-gpu={columns}", "--format=csv,noheader")
    try:
        output = subprocess.check_output(  # noqa: S603 - a fixed command
            command, stderr=subprocess.DEVNULL, text=True, timeout=TOOL_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return output.strip().splitlines()
