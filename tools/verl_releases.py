"""Write `rewardkit/launch/verl/release_keys/*.json`: every key of a verl release with its default.

    pip download verl==0.9.1 --no-deps -d wheels
    python tools/verl_releases.py write wheels/verl-0.9.1-py3-none-any.whl
    python tools/verl_releases.py changes 0.9.1
    python tools/verl_releases.py compose wheels/verl-0.9.1-py3-none-any.whl

A git repository of verl in place of a wheel stands for its HEAD, as an unreleased version. `write`
composes the trainer's configuration for FSDP, for Megatron and for the engines that plans do not use.
Interpolations are stored as they are written, and for Megatron only the differences are stored.
`changes` lists the keys that went, came or have another default since the release before. `compose`
plans every recipe for the version, and composes the command with the configuration of the source.
`write` and `compose` need hydra-core, and import neither verl nor torch.
docs/how-to/new-verl-release.md says when to use which.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "rewardkit" / "launch" / "verl" / "release_keys"

CONFIG = "verl/trainer/config"
VERSION_FILE = "verl/version/version"


@dataclass(frozen=True)
class Source:
    """Where a version's configuration comes from.

    Attributes:
        version: the version, as `pip list` prints it.
        date: the day of the wheel's newest file, or of the commit.
        commit: the commit of an unreleased version; "" for a wheel.
        config: the folder with the trainer's configuration.
    """

    version: str
    date: str
    commit: str
    config: Path


def main(arguments: list[str]) -> None:
    commands = {"write": write_version, "changes": print_changes, "compose": compose_recipes}
    if len(arguments) < 2 or arguments[0] not in commands:
        sys.exit(__doc__)
    refused = sum(commands[arguments[0]](argument) for argument in arguments[1:])
    sys.exit(f"{refused} refused" if refused else 0)


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Unpack the configuration of a wheel, or of the HEAD of a git repository."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / CONFIG
        if path.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(folder)
                year, month, day = max(file.date_time for file in wheel.infolist())[:3]
            match = re.search(r"verl-([\d.]+)-", Path(path).name)
            assert match, path
            yield Source(match[1], f"{year}-{month:02}-{day:02}", "", config)
        else:
            archive = git(path, "archive", "HEAD", CONFIG, VERSION_FILE)
            with tarfile.open(fileobj=BytesIO(archive)) as tar:
                tar.extractall(folder, filter="data")
            commit, date = git(path, "log", "-1", "--format=%H %cs").decode().split()
            version = (Path(folder) / VERSION_FILE).read_text().strip()
            if not re.search(r"\.dev\d*$", version):
                sys.exit(f"{path}: HEAD is verl {version}, not a .dev version. Use its wheel.")
            yield Source(re.sub(r"\.dev$", ".dev0", version), date, commit, config)


def git(repository: str, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", repository, *arguments], stdout=subprocess.PIPE, check=True
    ).stdout


def write_version(path: str) -> int:
    with open_source(path) as source:
        config = source.config
        fsdp = compose_keys(config, "ppo_trainer")
        megatron = compose_keys(config, "ppo_megatron_trainer")
        engines = {
            engine: engine_keys(config, engine, fsdp.keys() | megatron.keys())
            for engine in other_engines(config)
        }
    differences = {k: v for k, v in megatron.items() if k not in fsdp or fsdp[k] != v}
    missing = sorted(fsdp.keys() - megatron.keys())
    release = {
        "verl": source.version,
        "date": source.date,
        "commit": source.commit,
        "fsdp": fsdp,
        "megatron": differences,
        "megatron_lacks": missing,
        "engines": engines,
    }
    text = json.dumps(release, indent=0, sort_keys=True)
    (OUT / f"{source.version}.json").write_text(text + "\n")
    print(
        f"{source.version} of {source.date}: {len(fsdp)} keys, {len(differences)} others and "
        f"{len(missing)} fewer in Megatron, engines that plans do not use: {', '.join(engines)}"
    )
    return 0


def print_changes(version: str) -> int:
    """Print the keys of FSDP and Megatron that a version removed and added, and its other defaults."""
    from rewardkit.launch.verl.releases import known_releases, parse_release, release_of

    before = [v for v in known_releases() if parse_release(v) < parse_release(version)][-1]
    for megatron in (False, True):
        old, new = (release_of(v, megatron=megatron).keys for v in (before, version))
        engine = "Megatron" if megatron else "FSDP"
        other = [
            f"{key}: {old[key]!r} -> {new[key]!r}"
            for key in sorted(old.keys() & new.keys())
            if old[key] != new[key]
        ]
        for title, lines in (
            (f"{engine}: only in {before}", sorted(old.keys() - new.keys())),
            (f"{engine}: only in {version}", sorted(new.keys() - old.keys())),
            (f"{engine}: default of {before} -> default of {version}", other),
        ):
            print(f"{title} ({len(lines)})", *(f"  {line}" for line in lines), sep="\n")
    return 0


def compose_recipes(path: str) -> int:
    """Compose the command of every recipe and variant; return how many Hydra refuses.

    Hydra refuses a key that the source lacks.
    """
    from hydra.errors import HydraException

    from rewardkit.launch.plan import make_plan
    from rewardkit.launch.recipe import built_in, load_tree, read_recipe
    from rewardkit.launch.verl.compose import config_name

    refused = 0
    with open_source(path) as source:
        for name in built_in():
            tree = load_tree(name)
            for variant in [None, *(tree.get("sweep") or {})]:
                plan = make_plan(read_recipe(tree, name, variant), source.version)
                overrides = hydra_overrides(plan)
                title = f"verl {plan.verl}, {name}{f' {variant}' if variant else ''}"
                try:
                    keys = compose_keys(source.config, config_name(plan.arguments), *overrides)
                except HydraException as error:
                    refused += 1
                    print(f"{title}: REFUSED: {' '.join(str(error).split())}")
                else:
                    print(f"{title}: {len(overrides)} overrides taken, {len(keys)} keys")
    return refused


def hydra_overrides(plan: Any) -> list[str]:
    """Return a plan's overrides, after those that stand for the configuration of the DAPO recipe."""
    from rewardkit.launch.verl.hydra_values import format_value
    from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS

    keys = DAPO_RECIPE_KEYS if plan.release.dapo_recipe else {}
    added = [f"++{key}={format_value(value)}" for key, value in keys.items()]
    return [*added, *(text for text in plan.arguments if not text.startswith("--"))]


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
