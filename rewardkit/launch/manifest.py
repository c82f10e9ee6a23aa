"""The record of a run, from which it can be repeated and compared with a later one."""

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, unreadable_file
from rewardkit.launch.plan import Plan
from rewardkit.launch.request import LaunchRequest
from rewardkit.output import atomic
from rewardkit.registry import is_path
from rewardkit.scorers.load import location
from rewardkit.versions import package_versions

#: The version of the manifest's format.
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The record of a launch: its request, its plan, and what was on this machine.

    `created` is the time in UTC (ISO 8601), `folder` where relative paths of the recipe start. `git` has the
    commit and state of that folder, `files` the sha256 of the parquet files and the scorer's file.
    """

    created: str
    where: str
    tree: dict[str, Any]
    overrides: list[str]
    verl: str
    command: list[str]
    env: dict[str, str]
    versions: dict[str, str]
    folder: str
    git: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


def manifest_of(plan: Plan, request: LaunchRequest) -> Manifest:
    """Return the record of a plan, with the current versions, files and git state."""
    return Manifest(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        where=request.where,
        tree=plan.recipe.model_dump(mode="json"),
        overrides=list(request.overrides),
        verl=plan.verl,
        command=plan.command(),
        env=dict(plan.env),
        versions=package_versions(),
        folder=str(Path.cwd()),
        git=_git(),
        files=file_digests(plan),
    )


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest as JSON."""
    with atomic(path) as part:
        part.write_text(json.dumps(asdict(manifest), indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_manifest(path: Path) -> Manifest:
    """Read a manifest."""
    try:
        manifest = Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise unreadable_file(path, error) from None
    except (ValueError, TypeError):
        raise DataError(
            f"{path} is not a manifest of rewardkit train. Pass the manifest.json of a run."
        ) from None
    if manifest.format != FORMAT:
        raise DataError(
            f"{path} has format {manifest.format}, and this rewardkit reads format {FORMAT}."
        )
    return manifest


def request_of_manifest(manifest: Manifest) -> LaunchRequest:
    """Return the request that repeats a run."""
    return LaunchRequest(
        tree=manifest.tree,
        where=manifest.where,
        overrides=tuple(manifest.overrides),
        verl=manifest.verl,
    )


def changes_since(manifest: Manifest, plan: Plan) -> list[str]:
    """Return a line for each difference from a run: in the command, or in a file's digest."""
    before, now, digests = manifest.command, plan.command(), file_digests(plan)
    lines = [f"the command had {argument}" for argument in before if argument not in now]
    lines += [f"the command now has {argument}" for argument in now if argument not in before]
    for path, digest in manifest.files.items():
        if digests.get(path) != digest:
            lines.append(f"{path} {'has changed' if path in digests else 'no longer exists'}")
    return lines


def file_digests(plan: Plan) -> dict[str, str]:
    """Return the sha256 of the parquet files and the scorer's file that are on this machine."""
    scorer = plan.recipe.reward.scorer
    names = [*plan.recipe.data.train, *plan.recipe.data.val]
    if scorer != "verl":
        names.append(scorer.partition(":")[0] if is_path(scorer) else location(scorer))
    paths = (Path(name).expanduser() for name in names)
    return {str(path): _sha256(path) for path in paths if path.is_file()}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _git() -> dict[str, str]:
    try:
        lines = subprocess.check_output(
            ("git", "status", "--porcelain=v2", "--branch"),  # noqa: S607 - the user's own git
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=10,
        ).splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    is_clean = all(line.startswith("#") for line in lines)
    return {"commit": lines[0].split()[-1], "state": "clean" if is_clean else "changed"}
