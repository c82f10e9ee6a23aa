"""The versions of rewardkit and of the packages that a run depends on.

`import rewardkit` imports this module, so its own imports stand in its functions.
"""

#: The version of rewardkit; pyproject.toml has the same.
VERSION = "0.3.0.dev0"

#: Packages that decide what a run of verl does.
PACKAGES = (
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
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def package_versions() -> dict[str, str]:
    """Return the versions of rewardkit, Python and `PACKAGES`; `not installed` for missing ones."""
    import platform

    versions = {package: package_version(package) or "not installed" for package in PACKAGES}
    return {"rewardkit": VERSION, "python": platform.python_version(), **versions}


def verl_awaits_rewards() -> bool:
    """Return whether the verl that runs in this process awaits a reward that is a coroutine function.

    verl does since 0.7.0, where the reward loop is the default; older releases take the coroutine
    for the score. False in a process that has not imported verl.
    """
    import sys
    from pathlib import Path

    file = getattr(sys.modules.get("verl"), "__file__", None)
    return bool(file) and (Path(str(file)).parent / "experimental" / "reward_loop").is_dir()
