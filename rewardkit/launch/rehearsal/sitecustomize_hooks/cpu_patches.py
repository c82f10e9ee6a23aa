"""Patches that let verl 0.5 and vLLM run on a CPU, and one for a defect of verl 0.5's `hf` rollout."""

import copy
from importlib import import_module
from types import ModuleType
from typing import Any

GIB = 1 << 30


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
