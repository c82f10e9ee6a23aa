"""Checkpoints of verl: which backend wrote them, whether they are whole, how to use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewardkit.errors import DataError

Backend = Literal["fsdp", "megatron", "hf"]

_SHARD = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")


@dataclass(frozen=True)
class Checkpoint:
    """A model's folder in a checkpoint of verl.

    Attributes:
        folder: where it lies, as `.../global_step_N/actor`.
        backend: `fsdp` (a shard for each rank), `megatron` (dist_ckpt), or `hf` (Hugging Face
            weights that can be used as they are).
        ranks: how many shards there must be; 0 where that is not known.
    """

    folder: Path
    backend: Backend
    ranks: int = 0

    @property
    def model(self) -> Path:
        """The folder with Hugging Face's files (config, tokenizer, perhaps weights)."""
        inner = self.folder / "huggingface"
        return inner if inner.is_dir() else self.folder


def find_checkpoint(path: Path, part: str = "actor") -> Checkpoint:
    """The checkpoint at a path: a model's folder, a `global_step_N`, or a run with several.

    Args:
        path: of any of the three; of a run, the last complete step is taken.
        part: `actor` or `critic`.

    Raises:
        DataError: there is none, or shards are missing (the message names their ranks).
    """
    folder = _model_folder(path, part)
    inner = folder / "model"  # where verl 0.9's Megatron writes
    for place in (folder, inner):
        if _weights(place / "huggingface") or (_weights(place) and not _shards(place)):
            return Checkpoint(place, "hf")
    if (folder / "dist_ckpt").is_dir() or (inner / "dist_ckpt").is_dir():
        return Checkpoint(folder, "megatron")
    shards = _shards(folder)
    if not shards:
        raise DataError(
            f"{folder}: no checkpoint of verl's: neither model_world_size_N_rank_R.pt (FSDP), nor "
            "dist_ckpt (Megatron), nor Hugging Face weights."
        )
    return Checkpoint(folder, "fsdp", _whole(folder, shards))


def _model_folder(path: Path, part: str) -> Path:
    if not path.is_dir():
        raise DataError(f"{path}: no such folder.")
    latest = path / "latest_checkpointed_iteration.txt"
    if latest.is_file():
        path = path / f"global_step_{latest.read_text().strip()}"
        if not path.is_dir():
            raise DataError(f"{path}: named in {latest.name}, and not there.")
    inner = path / part
    return inner if inner.is_dir() else path


def _weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))


def _shards(folder: Path) -> list[tuple[int, int]]:
    """World size and rank of every FSDP shard."""
    found = (_SHARD.fullmatch(path.name) for path in folder.glob("model_world_size_*"))
    return sorted((int(match[1]), int(match[2])) for match in found if match)


def _whole(folder: Path, shards: list[tuple[int, int]]) -> int:
    """The world size, if there is a shard of every rank."""
    sizes = {size for size, _ in shards}
    if len(sizes) > 1:
        raise DataError(
            f"{folder}: shards of runs with {' and '.join(map(str, sorted(sizes)))} ranks; "
            "leave those of one run."
        )
    size = sizes.pop()
    missing = sorted(set(range(size)) - {rank for _, rank in shards})
    if missing:
        raise DataError(
            f"{folder}: {len(shards)} of {size} shards; ranks {_spans(missing)} are missing. Each "
            "node wrote its own: copy those of the other nodes into this folder."
        )
    return size


def _spans(numbers: list[int]) -> str:
    """`[1, 2, 3, 7]` -> `1-3, 7`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)


def merge_command(found: Checkpoint, out: Path, python: str) -> list[str]:
    """The merger of verl itself, for a checkpoint that is not Hugging Face's yet (verl 0.4.1 and later)."""
    return [
        python,
        "-m",
        "verl.model_merger",
        "merge",
        "--backend",
        found.backend,
        "--local_dir",
        str(found.folder),
        "--target_dir",
        str(out),
    ]


def serve_command(
    model: str, *, lengths: tuple[int, int], tp: int, port: int, name: str
) -> list[str]:
    """A vLLM server with the lengths a model was trained with.

    Args:
        model: a folder with Hugging Face weights.
        lengths: of prompt and response, in tokens.
        tp: tensor parallel size.
        port: to listen on, at 127.0.0.1.
        name: the server calls the model so.
    """
    total = str(sum(lengths))
    return [
        "vllm",
        "serve",
        model,
        "--served-model-name",
        name,
        "--tensor-parallel-size",
        str(tp),
        "--max-model-len",
        total,
        "--max-num-batched-tokens",
        str(max(8192, sum(lengths))),
        "--gpu-memory-utilization",
        "0.9",
        "--generation-config",
        "vllm",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]


def serve_env(devices: str) -> Mapping[str, str]:
    """What a server needs on the devices, beside its command."""
    return {"VLLM_USE_V1": "1", "TASK_QUEUE_ENABLE": "1"} if devices == "npu" else {}
