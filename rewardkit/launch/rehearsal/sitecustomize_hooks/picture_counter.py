"""Record the pictures that a vision model gets, in a file of lines of JSON.

Each line has `part`, which is `actor` or `rollout`, and `tokens`, the tokens of each picture of one
forward pass. REWARDKIT_REHEARSAL_PICTURES names the file.
"""

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "REWARDKIT_REHEARSAL_PICTURES"

#: The class of the vision layers in transformers, and in vLLM.
CLASSES = {
    "actor": "Qwen2_5_VisionTransformerPretrainedModel",
    "rollout": "Qwen2_5_VisionTransformer",
}


def count_actor(module: ModuleType) -> None:
    """Record the pictures that transformers' model gets."""
    _count(module, "actor")


def count_rollout(module: ModuleType) -> None:
    """Record the pictures that vLLM's model gets."""
    _count(module, "rollout")


def _count(module: ModuleType, part: str) -> None:
    vision = getattr(module, CLASSES[part])
    forward = vision.forward

    def recorded(self: Any, pixels: Any, grid_thw: Any, *args: Any, **kwargs: Any) -> Any:
        grids = grid_thw if isinstance(grid_thw, list) else grid_thw.tolist()
        merged = self.spatial_merge_size**2
        _write({"part": part, "tokens": [t * h * w // merged for t, h, w in grids]})
        return forward(self, pixels, grid_thw, *args, **kwargs)

    vision.forward = recorded


def _write(line: dict[str, Any]) -> None:
    with Path(os.environ[VARIABLE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
