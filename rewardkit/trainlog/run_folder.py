"""The log of a run in the run's own folder, and the records of its reward."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.trainlog.reward_files import RewardRecords, has_dumps, has_records

#: Logs that `rewardkit train` writes into the folder of a run, the one to read first: a run's own
#: output, a rehearsal's, and the metrics of verl's `file` logger, which lack the configuration.
RUN_LOGS = ("console.log", "verl.log", "metrics.jsonl")

#: Suffixes of other files that may be logs.
LOG_SUFFIXES = frozenset({".log", ".jsonl", ".txt"})

#: Files or folders that a message names.
MAX_NAMES = 3


def run_logs(folder: Path) -> list[Path]:
    """Return the logs that `rewardkit train` wrote into a folder, the one to read first."""
    files = [folder / name for name in RUN_LOGS]
    return [file for file in files if file.is_file() and file.stat().st_size]


def own_records(folder: Path, config: Mapping[str, Any]) -> RewardRecords | None:
    """Return the records of the reward of a run: where its manifest says, or in the folder itself.

    Without records, they are verl's dumps in the folder that the run's configuration names. None if there
    is neither, or no log beside which they can be shown.
    """
    if not run_logs(folder):
        return None
    if has_records(folder):
        return RewardRecords(folder)
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        base, since = manifest["folder"], datetime.fromisoformat(manifest["created"]).timestamp()
        tree = manifest["tree"]
    except (OSError, ValueError, TypeError, KeyError):
        base, since, tree = folder, 0.0, {}
    try:
        record = Path(base, Path(tree["reward"]["record"]).expanduser())
        if record.is_dir() and has_records(record):
            return RewardRecords(record, since)
    except (TypeError, KeyError, RuntimeError):
        pass
    dumps = config.get("trainer.rollout_data_dir")
    if isinstance(dumps, str) and (named := Path(base, dumps)).is_dir() and has_dumps(named):
        return RewardRecords(named)
    return None


def only_log(folder: Path) -> Path:
    """Return the one file of a folder that may be a log.

    Raises:
        DataError: the folder has none, or several.
    """
    files = sorted(file for file in folder.iterdir() if file.suffix in LOG_SUFFIXES)
    if len(files) == 1:
        return files[0]
    if files:
        raise DataError(
            f"{folder}: the folder has {len(files):,} files that may be logs; name one of them: "
            f"{_names(files)}."
        )
    raise DataError(
        f"{folder}: the folder has no training log ({', '.join(RUN_LOGS)}), no rollout dumps "
        f"(<step>.jsonl), no records of a reward and no TensorBoard event files.{_hint(folder)}"
    )


def _hint(folder: Path) -> str:
    if (folder / "manifest.json").is_file():
        return " The run has not started, or writes its log elsewhere: pass the log of its job."
    runs = {file.parent for name in RUN_LOGS for file in folder.glob(f"*/{name}")}
    return f" Name a run's folder in it: {_names(sorted(runs))}." if runs else ""


def _names(paths: list[Path]) -> str:
    names = [path.name for path in paths[:MAX_NAMES]]
    return ", ".join(names) + (", ..." if len(paths) > MAX_NAMES else "")
