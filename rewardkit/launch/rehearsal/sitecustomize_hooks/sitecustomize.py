"""Run by Python at the start of every process of a rehearsal: its folder is on PYTHONPATH.

Ray's workers are processes of their own, so what verl needs to run on a CPU cannot be set in one
place. The bridges below are applied right after the module they belong to has been imported; no
file of verl is changed.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

#: What is bridged, and the function (`module:name`) that is given the imported module.
BRIDGES = {
    "verl.utils.device": "rehearsal_bridges:devices",
    "verl.utils.fsdp_utils": "rehearsal_bridges:offload",
    "verl.utils.model": "rehearsal_bridges:value_model",
    "verl.workers.rollout.hf_rollout": "rehearsal_bridges:hf_rollout",
    "vllm.model_executor.layers.utils": "rehearsal_bridges:vllm_linear",
}


class Bridger(MetaPathFinder):
    """Finds what Python would find, and bridges it when it has been imported."""

    def __init__(self) -> None:
        self.looking: set[str] = set()

    def find_spec(self, name: str, *_others: Any) -> ModuleSpec | None:
        """The spec of a module to be bridged; None for any other."""
        if name not in BRIDGES or name in self.looking:
            return None
        self.looking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self.looking.discard(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module
        module_name, _, function = BRIDGES[name].partition(":")

        def load_and_bridge(module: ModuleType) -> None:
            load(module)
            getattr(import_module(module_name), function)(module)

        vars(spec.loader)["exec_module"] = load_and_bridge
        return spec


sys.meta_path.insert(0, Bridger())
