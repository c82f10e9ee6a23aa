"""Versions of the packages that a run depends on, from their metadata: nothing is imported."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from rewardkit import __version__

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


def package_version(package: str) -> str | None:
    """Return the installed version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def package_versions() -> dict[str, str]:
    """Return the versions of rewardkit, Python and `PACKAGES`; `not installed` for missing ones."""
    versions = {package: package_version(package) or "not installed" for package in PACKAGES}
    return {"rewardkit": __version__, "python": platform.python_version(), **versions}
