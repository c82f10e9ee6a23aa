"""Two launch scripts and the commands that bash starts with them, for `import_scripts.py` in small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Defaults, arithmetic and a line that continues.
DEFAULTS = """\
#!/usr/bin/env bash
set -euo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
responses=${1:-8}
max_prompt=$((256 * 2))
python3 -m verl.trainer.main_ppo \\
    data.train_files="$HOME/data/gsm8k/train.parquet" \\
    data.val_files="$HOME/data/gsm8k/test.parquet" \\
    data.max_prompt_length=$max_prompt \\
    data.train_batch_size=64 \\
    actor_rollout_ref.model.path="$MODEL" \\
    actor_rollout_ref.rollout.n=${responses} \\
    trainer.experiment_name="${MODEL##*/}_n${responses}"
"""

#: Arrays and a branch for each kind of device.
BRANCHES = """\
DEVICE=${DEVICE:-gpu}
DATA=(data.train_files=/data/train.parquet data.val_files=/data/test.parquet)
ROLLOUT=(actor_rollout_ref.rollout.name=vllm)
case "$DEVICE" in
    gpu) devices=8 ;;
    npu)
        devices=16
        ROLLOUT+=(actor_rollout_ref.rollout.enforce_eager=True)
        ;;
esac
python3 -m verl.trainer.main_ppo "${DATA[@]}" "${ROLLOUT[@]}" \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=$devices
"""

_START = ["python3", "-m", "verl.trainer.main_ppo"]


def write_scripts(folder: Path) -> None:
    """Write the scripts and their runs."""
    folder.mkdir(parents=True)
    (folder / "defaults.sh").write_text(DEFAULTS, encoding="utf-8")
    (folder / "branches.sh").write_text(BRANCHES, encoding="utf-8")
    _write_run(folder, "defaults", _defaults("Qwen/Qwen2.5-0.5B-Instruct", "8"))
    _write_run(
        folder,
        "defaults@MODEL=Qwen3-4B",
        _defaults("Qwen/Qwen3-4B", "4"),
        set_env={"MODEL": "Qwen/Qwen3-4B"},
        arguments=["4"],
    )
    _write_run(folder, "branches", _branches("8"))
    eager = "actor_rollout_ref.rollout.enforce_eager=True"
    _write_run(folder, "branches@DEVICE=npu", _branches("16", eager), set_env={"DEVICE": "npu"})


def _write_run(folder: Path, name: str, argv: list[str], **more: Any) -> None:
    text = json.dumps({"argv": argv, **more}, indent=0)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _defaults(model: str, responses: str) -> list[str]:
    return [
        *_START,
        "data.train_files=/HOME/user/data/gsm8k/train.parquet",
        "data.val_files=/HOME/user/data/gsm8k/test.parquet",
        "data.max_prompt_length=512",
        "data.train_batch_size=64",
        f"actor_rollout_ref.model.path={model}",
        f"actor_rollout_ref.rollout.n={responses}",
        f"trainer.experiment_name={model.partition('/')[2]}_n{responses}",
    ]


def _branches(devices: str, *more: str) -> list[str]:
    return [
        *_START,
        "data.train_files=/data/train.parquet",
        "data.val_files=/data/test.parquet",
        "actor_rollout_ref.rollout.name=vllm",
        *more,
        "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B",
        f"trainer.n_gpus_per_node={devices}",
    ]
