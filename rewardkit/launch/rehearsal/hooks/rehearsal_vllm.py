"""A plug-in of vLLM, which loads it in every process of its engine."""

from importlib import import_module
from typing import Any


def register() -> None:
    """Keep vLLM from packing and dropping the plain weights, which verl updates at every step."""
    linear = import_module("torch").nn.functional.linear

    def keep(layer: Any, *_: Any, **__: Any) -> None:
        layer.cpu_linear = linear

    vars(import_module("vllm.model_executor.layers.utils"))["dispatch_cpu_unquantized_gemm"] = keep
    calls = import_module("rehearsal_calls")
    if calls.SETTINGS["pixels"]:
        qwen = import_module("vllm.model_executor.models.qwen2_5_vl")
        calls.record_images(qwen.Qwen2_5_VisionTransformer, "rollout")
