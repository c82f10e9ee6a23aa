"""Python runs this file at the start of every process of a rehearsal: its folder is on PYTHONPATH.

Ray's workers are separate processes, so verl cannot be prepared for a CPU in one place. Each patch
below is applied right after its module is imported; verl's files are not changed.
"""

import gc
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

#: Objects between two runs of the garbage collector. Python's 700 cost a fifth of the time in which
#: verl, torch and vLLM are imported, and a rehearsal imports them in every process.
OBJECTS_PER_COLLECTION = 100_000

#: Module -> the function (`module:name`) that patches it after its import.
PATCHES = {
    "torchvision.extension": "cpu_patches:declare_operators",
    "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl": "picture_counter:count_actor",
    "verl.utils.device": "cpu_patches:use_cpu_device",
    "verl.utils.fsdp_utils": "cpu_patches:disable_offload",
    "verl.utils.model": "cpu_patches:load_critic_with_sdpa",
    "verl.workers.rollout.hf_rollout": "cpu_patches:patch_rollout",
    "vllm.model_executor.layers.utils": "cpu_patches:keep_plain_weights",
    "vllm.model_executor.models.qwen2_5_vl": "picture_counter:count_rollout",
}


class PatchingFinder(MetaPathFinder):
    """Finds the modules that Python would find, and patches those of `PATCHES` after import."""

    def __init__(self) -> None:
        self.pending: set[str] = set()

    def find_spec(self, name: str, *_others: Any) -> ModuleSpec | None:
        """Return the spec of a module to be patched; None for any other."""
        if name not in PATCHES or name in self.pending:
            return None
        self.pending.add(name)
        try:
            spec = find_spec(name)
        finally:
            self.pending.discard(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module
        module_name, _, function = PATCHES[name].partition(":")

        def load_and_patch(module: ModuleType) -> None:
            load(module)
            getattr(import_module(module_name), function)(module)

        vars(spec.loader)["exec_module"] = load_and_patch
        return spec


gc.set_threshold(OBJECTS_PER_COLLECTION)
sys.meta_path.insert(0, PatchingFinder())
