"""Write `rewardkit/launch/verl/release_keys/*.json`: every key that a verl release composes, with its default.

    pip download verl==0.9.1 --no-deps -d wheels
    python tools/verl_releases.py wheels/verl-0.9.1-py3-none-any.whl
    python tools/verl_releases.py --changes 0.9.1

The first command needs hydra-core (any environment with a verl has it); verl itself is not
imported. Hydra composes a wheel's trainer configuration for FSDP and for Megatron; interpolations
are kept as they are written, and of Megatron only the differences are stored. `--changes` lists the
keys that a release has and the one before it has not, and the other way round: what
docs/how-to/new-verl-release.md needs.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "rewardkit" / "launch" / "verl" / "release_keys"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--changes"]:
        print_changes(arguments[1])
    else:
        write_releases(arguments)


def print_changes(version: str) -> None:
    """Print the keys of FSDP and Megatron that came and went with a release."""
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
        found = re.search(r"verl-([\d.]+)-", Path(wheel).name)
        assert found, wheel
        version = found[1]
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(wheel).extractall(folder)
            config = Path(folder) / "verl" / "trainer" / "config"
            fsdp = composed(config, "ppo_trainer")
            megatron = composed(config, "ppo_megatron_trainer")
        differs = {k: v for k, v in megatron.items() if k not in fsdp or fsdp[k] != v}
        gone = sorted(fsdp.keys() - megatron.keys())
        release = {"verl": version, "fsdp": fsdp, "megatron": differs, "megatron_lacks": gone}
        text = json.dumps(release, indent=0, sort_keys=True)
        (OUT / f"{version}.json").write_text(text + "\n")
        print(
            f"{version}: {len(fsdp)} keys, {len(differs)} others and {len(gone)} fewer in Megatron"
        )


def composed(config: Path, name: str) -> dict[str, object]:
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(config), version_base=None):
        return dict(sorted(flat(compose(name))))


def flat(config: Any, prefix: str = "") -> list[tuple[str, object]]:
    """Dotted keys with values; a mapping without keys is a value: it takes any key after a `+`."""
    from omegaconf import DictConfig, OmegaConf

    items: list[tuple[str, object]] = []
    for key in config:
        path = f"{prefix}{key}"
        if OmegaConf.is_interpolation(config, key) or OmegaConf.is_missing(config, key):
            items.append((path, OmegaConf.to_container(config, resolve=False)[key]))
        elif isinstance(config[key], DictConfig) and len(config[key]):
            items += flat(config[key], f"{path}.")
        else:
            value = config[key]
            plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            items.append((path, plain))
    return items


if __name__ == "__main__":
    main(sys.argv[1:])
