"""Write `rewardkit/launch/verl/release_keys/*.json`: every key of a verl release with its default.

    pip download verl==0.9.1 --no-deps -d wheels
    python tools/verl_releases.py wheels/verl-0.9.1-py3-none-any.whl
    python tools/verl_releases.py --changes 0.9.1

Writing needs hydra-core, which every environment with verl has; verl itself is not imported. Hydra
composes the trainer configuration of a wheel for FSDP and for Megatron. Interpolations are stored as
they are written, and for Megatron only the differences are stored. `--changes` lists the keys that a
release has added and removed since the release before it, as docs/how-to/new-verl-release.md needs them.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "rewardkit" / "launch" / "verl" / "release_keys"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--changes"]:
        print_changes(arguments[1])
    else:
        write_releases(arguments)


def print_changes(version: str) -> None:
    """Print the keys of FSDP and Megatron that a release has removed and added."""
    from rewardkit.launch.verl.releases import known_releases, release_of

    versions = known_releases()
    before = versions[versions.index(version) - 1]
    for megatron in (False, True):
        old, new = (release_of(v, megatron=megatron) for v in (before, version))
        engine = "Megatron" if megatron else "FSDP"
        for title, keys in (
            (f"{engine}: only in {before}", sorted(old.keys.keys() - new.keys.keys())),
            (f"{engine}: only in {version}", sorted(new.keys.keys() - old.keys.keys())),
        ):
            print(f"{title} ({len(keys)})", *(f"  {key}" for key in keys), sep="\n")


def write_releases(wheels: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    for wheel in wheels:
        match = re.search(r"verl-([\d.]+)-", Path(wheel).name)
        assert match, wheel
        version = match[1]
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(wheel).extractall(folder)
            config = Path(folder) / "verl" / "trainer" / "config"
            fsdp = compose_keys(config, "ppo_trainer")
            megatron = compose_keys(config, "ppo_megatron_trainer")
            engines = {
                engine: engine_keys(config, engine, fsdp.keys() | megatron.keys())
                for engine in other_engines(config)
            }
        differences = {k: v for k, v in megatron.items() if k not in fsdp or fsdp[k] != v}
        missing = sorted(fsdp.keys() - megatron.keys())
        release = {
            "verl": version,
            "fsdp": fsdp,
            "megatron": differences,
            "megatron_lacks": missing,
            "engines": engines,
        }
        text = json.dumps(release, indent=0, sort_keys=True)
        (OUT / f"{version}.json").write_text(text + "\n")
        print(
            f"{version}: {len(fsdp)} keys, {len(differences)} others and {len(missing)} fewer in Megatron"
        )


def compose_keys(config: Path, name: str, *overrides: str) -> dict[str, object]:
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(config), version_base=None):
        return dict(sorted(flat_items(compose(name, overrides=list(overrides)))))


def other_engines(config: Path) -> list[str]:
    """Return the engines of a release that no plan of ours can use."""
    files = [*config.glob("engine/*.yaml"), *config.glob("model_engine/*.yaml")]
    return sorted({file.stem for file in files} - {"dp", "fsdp", "megatron"})


def engine_keys(config: Path, engine: str, supported: Collection[str]) -> list[str]:
    """Return the keys that only this engine has, without those in a section of its name.

    An engine that the trainer of PPO cannot choose (`automodel`: verl uses it for SFT) has none.
    """
    if not (config / "model_engine" / f"{engine}.yaml").exists():
        return []
    keys = compose_keys(config, "ppo_trainer", f"model_engine={engine}")
    return [key for key in keys if key not in supported and engine not in key.split(".")]


def flat_items(config: Any, prefix: str = "") -> list[tuple[str, object]]:
    """Return dotted keys with values; an empty mapping is a value, because it accepts keys with `+`."""
    from omegaconf import DictConfig, OmegaConf

    items: list[tuple[str, object]] = []
    for key in config:
        path = f"{prefix}{key}"
        if OmegaConf.is_interpolation(config, key) or OmegaConf.is_missing(config, key):
            items.append((path, OmegaConf.to_container(config, resolve=False)[key]))
        elif isinstance(config[key], DictConfig) and len(config[key]):
            items += flat_items(config[key], f"{path}.")
        else:
            value = config[key]
            plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            items.append((path, plain))
    return items


if __name__ == "__main__":
    main(sys.argv[1:])
