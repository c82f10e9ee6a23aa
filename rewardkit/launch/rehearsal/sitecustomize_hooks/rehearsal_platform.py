"""The CPU as a platform plug-in of verl 0.9; VERL_USE_EXTERNAL_MODULES names this file.

Ray counts one GPU, on which verl places its workers; they compute on the CPU.
"""

from contextlib import nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

cpu_patches = import_module("cpu_patches")


def _device_module() -> ModuleType:
    """Return `torch.cpu` with the functions of `torch.cuda` that it lacks."""
    cpu = import_module("torch").cpu
    module = ModuleType("rehearsal_device")
    module.__dict__.update({name: value for name, value in vars(cpu).items() if name[:2] != "__"})
    module.__dict__.update(
        is_available=lambda: True,
        current_device=lambda: 0,
        device_count=lambda: 1,
        synchronize=_nothing,
    )
    cpu_patches.add_missing_functions(module)
    return module


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _platform() -> type[Any]:
    torch = import_module("torch")
    base = import_module("verl.plugin.platform.platform_base").PlatformBase
    answers: dict[str, Any] = {
        "is_available": True,
        "current_device": "cpu",
        "device_count": 1,
        "get_device_capability": (None, None),
        "communication_backend_name": "gloo",
        "visible_devices_envvar": "CUDA_VISIBLE_DEVICES",
        "ray_resource_name": "GPU",
        "ray_noset_envvars": ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"],
        "is_ipc_supported": False,
        "cudart": None,
        "set_device": None,
        "synchronize": None,
        "set_allocator_settings": None,
        "empty_cache": None,
        "profiler_start": None,
        "profiler_stop": None,
        "nvtx_range": nullcontext(),
    }
    members = {name: _answering(value) for name, value in answers.items()}
    members |= {
        "device_name": "cpu",
        "vendor_name": "cpu",
        "device_module": _device_module(),
        "manual_seed": lambda _, seed: torch.manual_seed(seed),
        "manual_seed_all": lambda _, seed: torch.manual_seed(seed),
    }
    return type("RehearsalPlatform", (base,), members)


def _answering(value: Any) -> Any:
    return lambda *_, **__: value


def install() -> None:
    """Make the CPU this process's platform."""
    manager = import_module("verl.plugin.platform.platform_manager")
    platform = manager.PlatformRegistry.register(platform="cpu")(_platform())
    manager.set_platform(platform())
    cpu_patches.add_missing_functions(import_module("torch").cpu)
    cpu_patches.use_gloo()


install()
