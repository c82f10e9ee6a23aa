"""Patches that let verl 0.5 and vLLM run on a CPU, and two for verl 0.5's `hf` rollout."""

import copy
import functools
import math
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

GIB = 1 << 30

#: Prompts whose pictures transformers 4.52 gets together: it compares each of their patches with all.
PROMPTS_TOGETHER = 4


def use_cpu_device(module: ModuleType) -> None:
    """Patch `verl.utils.device`: the device is the CPU, and gloo does the collectives.

    verl 0.9 has a platform plug-in for this (`rehearsal_platform`).
    """
    torch = import_module("torch")
    torch.cuda.is_available = _no
    module.__dict__.update(is_cuda_available=False, is_npu_available=False)
    if hasattr(module, "get_nccl_backend"):
        module.__dict__.update(
            get_nccl_backend=lambda: "gloo", get_device_id=lambda: torch.device("cpu")
        )
    add_missing_functions(torch.cpu)
    use_gloo()


def _no() -> bool:
    return False


def add_missing_functions(module: Any) -> None:
    """Add the functions of `torch.cuda` that verl calls to `torch.cpu` or its stand-in."""
    torch = import_module("torch")
    calls = {
        "memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_allocated": 0,
        "max_memory_reserved": 0,
        "mem_get_info": (8 * GIB, 16 * GIB),
        "get_device_name": "cpu",
        "empty_cache": None,
        "ipc_collect": None,
        "reset_peak_memory_stats": None,
        "set_device": None,
    }
    random = {
        "get_rng_state": torch.get_rng_state,
        "set_rng_state": torch.set_rng_state,
        "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
    }
    for name, value in calls.items():
        if not hasattr(module, name):
            setattr(module, name, _returning(value))
    for name, function in random.items():
        if not hasattr(module, name):
            setattr(module, name, function)


def _returning(value: Any) -> Any:
    return lambda *_, **__: value


def use_gloo() -> None:
    """Accept verl's `cpu:gloo,<device>:gloo` with the CPU as the device."""
    distributed = import_module("torch.distributed")
    start = distributed.init_process_group

    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return start("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    vars(distributed)["init_process_group"] = init_process_group


def sample_prompts_once(rollout: ModuleType) -> None:
    """Keep verl 0.5's `hf` rollout from repeating prompts n times that verl has repeated already."""
    start = rollout.HFRollout.__init__

    def once(self: Any, module: Any, config: Any) -> None:
        config = copy.deepcopy(config)
        config.n = 1
        start(self, module, config)

    rollout.HFRollout.__init__ = once


def show_pictures(rollout: ModuleType) -> None:
    """Give the pictures of prompts to verl 0.5's `hf` rollout, which generates from text alone."""
    generate = rollout.HFRollout.generate_sequences

    def with_pictures(self: Any, prompts: Any) -> Any:
        if prompts.batch["position_ids"].dim() == 2:
            return generate(self, prompts)
        parts = prompts.chunk(len(prompts) // math.gcd(len(prompts), PROMPTS_TOGETHER))
        return type(prompts).concat([_generate(generate, self, part) for part in parts])

    rollout.HFRollout.generate_sequences = with_pictures


def _generate(generate: Callable[[Any, Any], Any], rollout: Any, prompts: Any) -> Any:
    positions = prompts.batch["position_ids"]
    # A token's position has three parts; the rollout continues one, from the count of tokens.
    prompts.batch["position_ids"] = prompts.batch["attention_mask"].cumsum(-1).sub(1).clamp(0)
    rows = prompts.non_tensor_batch["multi_modal_data"]
    images = [image for row in rows for image in row.get("image") or ()]
    module = rollout.module
    module.generate = functools.partial(module.generate, **_pixels(module, images))
    try:
        output = generate(rollout, prompts)
    finally:
        del module.generate
    responses = output.batch["responses"]
    after = positions[..., -1:] + responses.new_ones(responses.shape).cumsum(-1).unsqueeze(1)
    output.batch["position_ids"] = import_module("torch").cat([positions, after], dim=-1)
    return output


def _pixels(module: Any, images: list[Any]) -> dict[str, Any]:
    if not images:
        return {}
    processor = import_module("transformers").AutoImageProcessor
    pixels = processor.from_pretrained(module.config.name_or_path)(images, return_tensors="pt")
    return dict(pixels)


def patch_rollout(rollout: ModuleType) -> None:
    """Apply both patches of the `hf` rollout."""
    sample_prompts_once(rollout)
    show_pictures(rollout)


def declare_operators(_extension: ModuleType) -> None:
    """Let torchvision's build for CUDA load with torch for the CPU.

    It describes two operators of its library, which that torch cannot load. Nothing here calls them.
    """
    if not hasattr(import_module("torch").ops.torchvision, "nms"):
        define = import_module("torch.library").define
        for name in ("nms", "qnms"):
            define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou) -> Tensor")


def load_critic_with_sdpa(module: ModuleType) -> None:
    """Load critics with SDPA: verl 0.5 loads them with FlashAttention, whatever is configured."""

    def load_valuehead_model(
        local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
    ) -> Any:
        return import_module("transformers").AutoModelForTokenClassification.from_pretrained(
            local_path,
            torch_dtype=torch_dtype,
            config=model_config,
            attn_implementation="sdpa",
            trust_remote_code=trust_remote_code,
        )

    module.__dict__["load_valuehead_model"] = load_valuehead_model


def disable_offload(module: ModuleType) -> None:
    """Do not offload the reference model to pinned memory: it is on the CPU already."""
    if hasattr(module, "CPUOffloadPolicy"):
        module.__dict__["CPUOffloadPolicy"] = _returning(None)


def keep_plain_weights(module: ModuleType) -> None:
    """Keep vLLM on a CPU from packing and dropping the plain weights that verl updates."""
    linear = import_module("torch").nn.functional.linear

    def keep(layer: Any, *_: Any, **__: Any) -> None:
        layer.cpu_linear = linear

    module.__dict__["dispatch_cpu_unquantized_gemm"] = keep
