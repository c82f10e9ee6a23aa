"""Python runs this file at the start of every process of a rehearsal: its folder is on PYTHONPATH."""

import gc
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Any


class TorchvisionFinder(MetaPathFinder):
    """Lets torchvision's build for CUDA load with torch for the CPU.

    It describes two operators of its library, which that torch cannot load. Nothing here calls them.
    """

    def find_spec(self, name: str, *_: Any) -> None:
        """Define the operators just before they are described; find nothing."""
        if name == "torchvision._meta_registrations":
            torch = import_module("torch")
            for operator in ("nms", "qnms"):
                if not hasattr(torch.ops.torchvision, operator):
                    schema = "(Tensor dets, Tensor scores, float iou) -> Tensor"
                    torch.library.define(f"torchvision::{operator}", schema)


sys.meta_path.insert(0, TorchvisionFinder())
# After Python's 700 new objects, collections cost a fifth of the time in which verl, torch and vLLM are
# imported, and a rehearsal imports them in every process.
gc.set_threshold(100_000)
