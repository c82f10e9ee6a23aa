"""verl's checkpoints: which backend wrote them, whether they are complete, how to use them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from rewardkit.errors import DataError, SourceError

Backend = Literal["fsdp", "megatron", "hf"]

_SHARD = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")


@dataclass(frozen=True)
class Checkpoint:
    """A model's folder in a checkpoint of verl, like `.../global_step_N/actor`.

    The backend is `fsdp` (a shard for each rank), `megatron` (dist_ckpt), or `hf` (Hugging Face weights that can
    be used as they are).
    """

    folder: Path
    backend: Backend

    @property
    def model(self) -> Path:
        """The folder with Hugging Face's files: config, tokenizer, and possibly weights."""
        inner = self.folder / "huggingface"
        return inner if inner.is_dir() else self.folder


def find_checkpoint(path: Path, part: str = "actor") -> Checkpoint:
    """Find the checkpoint of the `actor` or `critic` in a model's folder, a `global_step_N` or a run's folder.

    Of a run the last complete step counts. A DataError names the ranks whose shards are missing.
    """
    if not path.is_dir():
        raise SourceError(f"{path}: no such folder.")
    latest = path / "latest_checkpointed_iteration.txt"
    if latest.is_file():
        path = path / f"global_step_{latest.read_text().strip()}"
        if not path.is_dir():
            raise SourceError(f"{path}: {latest.name} names this folder, which does not exist.")
    folder = path / part if (path / part).is_dir() else path
    inner = folder / "model"  # verl 0.9's Megatron writes there
    for place in (folder, inner):
        if _has_weights(place / "huggingface") or (_has_weights(place) and not _shards(place)):
            return Checkpoint(place, "hf")
    if (folder / "dist_ckpt").is_dir() or (inner / "dist_ckpt").is_dir():
        return Checkpoint(folder, "megatron")
    shards = _shards(folder)
    if not shards:
        raise DataError(
            f"{folder}: not a checkpoint of verl: neither model_world_size_N_rank_R.pt (FSDP), nor "
            "dist_ckpt (Megatron), nor Hugging Face weights."
        )
    _require_all(folder, shards)
    return Checkpoint(folder, "fsdp")


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))


def _shards(folder: Path) -> set[tuple[int, int]]:
    """Return the world size and rank of every FSDP shard."""
    matches = (_SHARD.fullmatch(path.name) for path in folder.glob("model_world_size_*"))
    return {(int(match[1]), int(match[2])) for match in matches if match}


def _require_all(folder: Path, shards: set[tuple[int, int]]) -> None:
    """Raise if a rank has no shard, or the shards are of several runs."""
    size, *others = sorted({size for size, _ in shards})
    if others:
        raise DataError(
            f"{folder}: shards of runs with {' and '.join(map(str, [size, *others]))} ranks; "
            "keep the shards of one run."
        )
    missing = sorted(set(range(size)) - {rank for _, rank in shards})
    if missing:
        runs = groupby(missing, key=lambda rank: rank - missing.index(rank))
        ends = [(ranks[0], ranks[-1]) for ranks in (list(run) for _, run in runs)]
        names = ", ".join(f"{low}-{high}" if low < high else str(low) for low, high in ends)
        raise DataError(
            f"{folder}: {len(shards)} of {size} shards; ranks {names} are missing. Each "
            "node writes its own shards: copy those of the other nodes into this folder."
        )


def merge_command(checkpoint: Checkpoint, out: Path, python: str) -> list[str]:
    """Return the command of verl's own merger, which writes Hugging Face weights."""
    options = f"-m verl.model_merger merge --backend {checkpoint.backend} --local_dir".split()
    return [python, *options, str(checkpoint.folder), "--target_dir", str(out)]


def serve_command(
    model: str, *, lengths: tuple[int, int], tp: int, port: int, name: str
) -> list[str]:
    """Return the command of a vLLM server of a folder with Hugging Face weights.

    `lengths` are those of a prompt and of a response that the model was trained with, in tokens; `tp` is the
    tensor parallel size.
    """
    total = sum(lengths)
    options = (
        f"--tensor-parallel-size {tp} --max-model-len {total} --max-num-batched-tokens "
        f"{max(8192, total)} --gpu-memory-utilization 0.9 --generation-config vllm --host 127.0.0.1 "
        f"--port {port}"
    )
    return ["vllm", "serve", model, "--served-model-name", name, *options.split()]


def serve_env(devices: str) -> Mapping[str, str]:
    """Return the environment variables that a server needs on a kind of device."""
    return {"VLLM_USE_V1": "1", "TASK_QUEUE_ENABLE": "1"} if devices == "npu" else {}
