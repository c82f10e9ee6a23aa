"""What starts Python in a launch script, such as `uv run`: the recipe's command does not have it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath

from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.recipe import Cluster

#: Words before a command that leave its environment as it is.
_TRANSPARENT = frozenset({"builtin", "command", "env", "exec", "nohup", "time", "xargs"})

#: The key of the finding about a job of a Ray cluster.
JOB = "ray job submit"

#: The option with a job's environment as JSON.
JSON = "--runtime-env-json"

#: Characters of a launcher in a finding.
MAX_SHOWN = 400


def launcher_findings(words: Sequence[str], env: Mapping[str, str]) -> Iterator[LaunchFinding]:
    """Yield findings about what a recipe's user has to carry over from a script's launcher.

    Args:
        words: what stands before Python in the command that starts the trainer.
        env: the variables of the command.
    """
    words = list(words)
    while words and (re.match(r"[A-Za-z_]\w*=", words[0]) or _is_transparent(words)):
        del words[0]
    if not words:
        return
    program = PurePath(words[0]).name
    if " ".join([program, *words[1:3]]) == JOB:
        end = words.index("--") if "--" in words else len(words)
        yield _job_finding(words[:end], env)
        yield from launcher_findings(words[end + 1 :], env)
        return
    shown = _shown(words[:-1] if words[-1] == "--" else words)
    if program == "uv" and "run" in words:
        text = (
            f"`{shown}` starts verl in the environment of a project; the recipe starts it in yours."
        )
        fix = "Create that environment with `uv sync` and the same extras, and run rewardkit train in it."
        yield LaunchFinding("warning", "launcher", "uv run", text, fix)
        return
    text = f"`{shown}` starts verl in the script; the recipe starts it without."
    fix = "Start the recipe through it as well if the run needs it."
    yield LaunchFinding("warning", "launcher", program, text, fix)


def _is_transparent(words: Sequence[str]) -> bool:
    has_options = len(words) > 1 and words[1].startswith("-")
    return words[0] in _TRANSPARENT and not has_options


def _job_finding(words: Sequence[str], env: Mapping[str, str]) -> LaunchFinding:
    options = _options(words[3:])
    default = Cluster.model_fields["address"].default
    address = options.get("--address") or env.get("RAY_ADDRESS") or default
    fixes = [f"Set cluster.target: ray-job and cluster.address: {address}."]
    if folder := options.get("--working-dir"):
        fixes.append(
            f"The job gets no copy of {folder} then: name the files in it by absolute paths."
        )
    if source := options.get("--runtime-env") or (JSON if JSON in options else ""):
        fixes.append(
            f"Put the env_vars of {source} under env:, and install its packages on the nodes."
        )
    if json := options.get(JSON):  # may hold secrets, and is long
        words = [word.replace(json, "...") for word in words]
    text = f"`{_shown(words)}` starts verl on a Ray cluster; the recipe starts it on this machine."
    return LaunchFinding("warning", "launcher", JOB, text, " ".join(fixes))


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return the options with values, written as `--name=value` or as `--name value`."""
    options: dict[str, str] = {}
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            options[name] = value if equals else following
    return options


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
