"""The CPU as a platform plug-in of verl: VERL_USE_EXTERNAL_MODULES names this file.

Every process that imports verl imports it. Ray counts one GPU, on which verl places its workers; they
compute on the CPU.
"""

from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry, set_platform

rehearsal_calls = import_module("rehearsal_calls")


def answer(value: Any) -> Any:
    """Return a function of any arguments that returns a value."""
    return lambda *_, **__: value


#: Functions of `torch.cuda` that verl calls and `torch.cpu` lacks.
MISSING = {
    **dict.fromkeys(
        "empty_cache ipc_collect reset_peak_memory_stats set_device".split(), answer(None)
    ),
    **{
        f"{kind}memory_{name}": answer(0)
        for kind in ("", "max_")
        for name in ("allocated", "reserved")
    },
    **{name: getattr(torch, name) for name in ("get_rng_state", "set_rng_state", "manual_seed")},
    "manual_seed_all": torch.manual_seed,
    "mem_get_info": answer((8 << 30, 16 << 30)),
    "get_device_name": answer("cpu"),
}

#: `torch.cpu` as verl's one device.
DEVICE = {
    "is_available": answer(True),
    "current_device": answer(0),
    "device_count": answer(1),
    "synchronize": answer(None),
}

#: The other functions of verl's base class do nothing.
PLATFORM = {
    "device_name": "cpu",
    "vendor_name": "cpu",
    "device_module": SimpleNamespace(**{**MISSING, **vars(torch.cpu), **DEVICE}),
    "is_available": answer(True),
    "current_device": answer("cpu"),
    "device_count": answer(1),
    "get_device_capability": answer((None, None)),
    "communication_backend_name": answer("gloo"),
    "visible_devices_envvar": answer("CUDA_VISIBLE_DEVICES"),
    "ray_resource_name": answer("GPU"),
    "ray_noset_envvars": answer(["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]),
    "nvtx_range": answer(nullcontext()),
    "manual_seed": lambda _, seed: torch.manual_seed(seed),
    "manual_seed_all": lambda _, seed: torch.manual_seed(seed),
}


def use_cpu() -> None:
    """Make the CPU this process's platform, without a second copy of the weights in pinned memory."""
    for name, function in MISSING.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, function)
    torch.cuda.is_available = answer(False)
    start = torch.distributed.init_process_group

    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return start("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    torch.distributed.init_process_group = init_process_group
    vars(import_module("torch.distributed.fsdp"))["CPUOffloadPolicy"] = answer(None)
    platform: Any = type("CpuPlatform", (PlatformBase,), PLATFORM)
    platform.__abstractmethods__ = frozenset()
    set_platform(PlatformRegistry.register(platform="cpu")(platform)())


def use_torch_attention() -> None:
    """Let every model use torch's attention; verl asks for FlashAttention when it loads a critic."""
    model = import_module("transformers.modeling_utils").PreTrainedModel
    choose = model.get_correct_attn_implementation

    def choose_sdpa(self: Any, _requested: str | None, *args: Any, **kwargs: Any) -> str:
        chosen: str = choose(self, "sdpa", *args, **kwargs)
        return chosen

    model.get_correct_attn_implementation = choose_sdpa


use_cpu()
if rehearsal_calls.SETTINGS["critic"]:
    use_torch_attention()
rehearsal_calls.record_scorer(import_module("verl.trainer.ppo.reward"))
if rehearsal_calls.SETTINGS["pixels"]:
    qwen = import_module("transformers.models.qwen2_5_vl.modeling_qwen2_5_vl")
    rehearsal_calls.record_images(qwen.Qwen2_5_VisionTransformerPretrainedModel, "actor")
