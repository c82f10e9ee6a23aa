"""A recipe: what a person decides about a run, in YAML.

The few fields here are those that rewardkit computes with (what verl is launched as, on what, with
which data and reward). Everything else is verl's own and stands under `verl:` by verl's names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError

from rewardkit.errors import DataError, UnknownNameError
from rewardkit.launch.overrides import flatten
from rewardkit.launch.recipe_errors import format_error
from rewardkit.launch.recipe_yaml import read_yaml
from rewardkit.registry import did_you_mean

FOLDER = Path(__file__).parent / "recipes"

Target = Literal[
    "local",
    "ray-job",
    "script",
    "slurm",
    "kuberay",
    "skypilot",
    "ascend",
    "modelarts",
]


def _checked(text: str, pattern: str, says: str) -> str:
    if not re.fullmatch(pattern, text, re.ASCII):
        raise PydanticCustomError("word", says)
    return text


def _word(text: str) -> str:
    """What stands in the comments that Slurm reads as options, or names a device."""
    return _checked(
        text, r"[\w.:,+=/@%\[\]-]+", "may have letters, digits and . _ : , + = / @ % [ ] -"
    )


def _kubernetes_name(text: str) -> str:
    says = "may have lower-case letters, digits and -, up to 63, and no - at either end"
    return _checked(text, r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", says)


def _variable(text: str) -> str:
    return _checked(text, r"[A-Za-z_]\w*", "is not a name of a variable")


_Text = Annotated[str, Field(min_length=1)]
_Word = Annotated[str, AfterValidator(_word)]
_Variable = Annotated[str, AfterValidator(_variable)]
_Count = Annotated[int, Field(gt=0, strict=True)]
_Port = Annotated[int, Field(ge=1024, le=65535, strict=True)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Data(_Part):
    """The parquet files.

    Attributes:
        train: files, as every node sees them.
        val: files of the validation; none where it is off.
        prepare: the commands that make them, for the person who reads the recipe.
    """

    train: list[_Text] = Field(min_length=1)
    val: list[_Text] = []
    prepare: list[str] = []

    @field_validator("train", "val", "prepare", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


class Reward(_Part):
    """The reward function.

    Attributes:
        scorer: a name of rewardkit's, `my_reward.py:compute_score`, or `verl` for verl's own scorer
            of each data_source.
        options: of the scorer.
    """

    scorer: str = "auto"
    options: dict[str, Any] = {}


class OverlongBuffer(_Part):
    """DAPO's soft penalty: from `len` tokens before the limit it grows to `penalty_factor`."""

    len: _Count
    penalty_factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    log: bool = False


class DynamicSampling(_Part):
    """Groups without a difference in `metric` are thrown away and generated anew.

    Attributes:
        metric: of the reward's extras (`acc`), or of verl's own.
        max_num_gen_batches: a run that needs more ends; 0 for no limit. verl 0.9 ignores it.
        gen_batch_size: prompts per round; verl 0.9 ignores it.
    """

    metric: str = "acc"
    max_num_gen_batches: int = 0
    gen_batch_size: _Count | None = None


class Dapo(_Part):
    """What is DAPO's alone; not used when the algorithm is another."""

    clip_ratio_low: float = Field(default=0.2, gt=0, allow_inf_nan=False)
    clip_ratio_high: float = Field(default=0.28, gt=0, allow_inf_nan=False)
    clip_ratio_c: float = Field(default=10.0, gt=1, allow_inf_nan=False)
    overlong_buffer: OverlongBuffer | None = None
    dynamic_sampling: DynamicSampling | None = None


class Cluster(_Part):
    """Where the run takes place.

    Attributes:
        target: how it is launched.
        address: of the Ray cluster's job server (ray-job), as in http://head:8265.
        head: the head node's host or address (ascend).
        port: of Ray's GCS on the head.
        dashboard_port: of Ray's dashboard and job server.
        interface: the network interface between nodes; discovered where it is not given.
        wait_s: seconds the head waits for the other nodes before it gives up.
        workdir: the folder on every node in which verl is started.
        python: the interpreter on the nodes.
        setup: shell lines run on every node first (conda activate, source set_env.sh).
        image: of the container (kuberay, skypilot, modelarts).
        partition: of Slurm; `account` and `time_limit` too.
        namespace: of Kubernetes.
        volumes: Kubernetes claim -> the folder it is mounted at.
        model_name: AscendFactory's name of the model (modelarts).
        detach: whether `train` leaves once a job is sent, instead of following it (ray-job).
        accelerator: SkyPilot's name of the GPU, as in H100.
        device_resource: the site's name of the device where it is not the usual one, for Slurm's
            --gres or Kubernetes' limits.
    """

    target: Target = "local"
    address: str = "http://127.0.0.1:8265"
    head: str | None = None
    port: _Port = 6379
    dashboard_port: _Port = 8265
    interface: str | None = None
    wait_s: int = Field(default=600, gt=0)
    workdir: str = "."
    python: str = "python3"
    setup: list[str] = []
    image: str | None = None
    partition: _Word | None = None
    account: _Word | None = None
    time_limit: _Word | None = None
    namespace: Annotated[str, AfterValidator(_kubernetes_name)] = "default"
    volumes: dict[str, str] = {}
    model_name: str | None = None
    detach: bool = False
    accelerator: str | None = None
    device_resource: _Word | None = None

    @field_validator("target", mode="before")
    @classmethod
    def _refuse_removed_target(cls, value: Any) -> Any:
        if value == "symmetric-run":
            raise PydanticCustomError(
                "removed_target", "this target was removed; use slurm or ray-job instead"
            )
        return value


class Recipe(_Part):
    """A run.

    Attributes:
        name: of the run; verl's experiment_name unless `verl:` has one.
        about: what it trains, in a line.
        source: where the settings come from.
        hardware: what it was made for.
        expect: what comes out.
        algorithm: which preset; see `presets.ALGORITHMS`.
        strategy: of the actor.
        devices: what the run is on; `devices_per_node` of them on each of `nodes`.
        model: a Hugging Face id or a path, as every node sees it.
        verl: settings by verl's names, nested or dotted; they win over all above.
        sweep: variants by name, each a part of a recipe that is laid over this one.
    """

    name: str = Field(pattern=r"^[^/\\\x00-\x1f]+$")
    about: str = ""
    source: str = ""
    hardware: str = ""
    expect: str = ""
    algorithm: Literal["ppo", "grpo", "dapo"]
    strategy: Literal["fsdp", "fsdp2", "megatron"] = "fsdp"
    devices: Literal["gpu", "npu", "cpu"] = "gpu"
    nodes: _Count = 1
    devices_per_node: _Count = 8
    model: str = Field(min_length=1)
    data: Data
    reward: Reward = Reward()
    dapo: Dapo = Dapo()
    cluster: Cluster = Cluster()
    env: dict[_Variable, str] = {}
    verl: dict[str, Any] = {}
    sweep: dict[str, dict[str, Any] | None] = {}

    @field_validator("env", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        words = {True: "1", False: "0"}
        return {k: words[v] if isinstance(v, bool) else v for k, v in value.items()}


def built_in() -> list[str]:
    """Return the names of the recipes that come with rewardkit."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def recipe_path(name: str) -> Path:
    """Return the file of a built-in recipe, or of a path that ends in `.yaml` or `.yml`.

    Raises:
        UnknownNameError: there is no such recipe; the message suggests the nearest name.
    """
    path = Path(name).expanduser()
    if path.suffix in {".yaml", ".yml"}:
        if not path.is_file():
            problem = "is a folder" if path.is_dir() else "does not exist"
            raise UnknownNameError(f"{name} {problem}.")
        return path
    if name not in built_in():
        raise UnknownNameError(
            f"unknown recipe {name!r}.{did_you_mean(name, built_in())} "
            f"Known: {', '.join(built_in())}; a file of your own ends in .yaml."
        )
    return FOLDER / f"{name}.yaml"


def load_tree(name: str) -> dict[str, Any]:
    """Read a recipe's YAML; nothing of it is validated.

    Raises:
        UnknownNameError: there is no such recipe.
        DataError: the file is not a YAML mapping.
    """
    path = recipe_path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8; save it as UTF-8.") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}.") from None
    tree = read_yaml(text, str(path))
    if tree is None:
        raise DataError(f"{path} is empty.")
    if not isinstance(tree, dict):
        raise DataError(f"{path}: a recipe is a mapping (name:, algorithm:, model:, data:, ...).")
    return tree


def deep_merge(tree: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a mapping into another: mappings are merged key by key, other values are replaced."""
    merged = dict(tree)
    for key, value in part.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = deep_merge(below, value) if both and below and value else value
    return merged


def read_recipe(tree: Mapping[str, Any], where: str, variant: str | None = None) -> Recipe:
    """Validate a recipe.

    Args:
        tree: its YAML.
        where: its name or file, for messages.
        variant: a variant of its sweep, merged into it.

    Raises:
        DataError: keys are unknown or have values of the wrong type; the message has a line for
            each.
        UnknownNameError: there is no such variant.
    """
    _require_writable(tree, where)
    tree = flatten_verl_section(tree, where)
    if variant is not None:
        tree = deep_merge(tree, _variant(tree, where, variant))
    return _validate(tree, where)


def merge_fields(recipe: Recipe, fields: Mapping[str, Any], where: str) -> Recipe:
    """Return a recipe with some fields replaced; of `data`, the given files only.

    Raises:
        DataError: a value is not of the field's type.
    """
    _require_writable(fields, where)
    changed = dict(fields)
    if "data" in changed:
        changed["data"] = {**dict(recipe.data), **changed["data"]}
    return _validate({**dict(recipe), **changed}, where)


def _validate(tree: Mapping[str, Any], where: str) -> Recipe:
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        lines = (format_error(one, where, Recipe) for one in error.errors())
        raise DataError("\n".join(lines)) from None


def _require_writable(value: Any, place: str) -> None:
    """Refuse text that neither a file nor a command can hold.

    Raises:
        DataError: a text has a NUL or a lone surrogate.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            _require_writable(key, place)
            _require_writable(item, f"{place}: {key}")
    elif isinstance(value, list):
        for item in value:
            _require_writable(item, place)
    elif isinstance(value, str) and re.search("[\0\ud800-\udfff]", value):
        raise DataError(f"{place}: {value!r} has a NUL or a lone surrogate; leave it out.")


def flatten_verl_section(tree: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the tree without empty sections, and with dotted keys under `verl:`.

    Raises:
        DataError: a key stands twice under `verl:`, nested and dotted.
    """
    sections = {key: value for key, value in tree.items() if value is not None}
    if isinstance(sections.get("verl"), Mapping):
        pairs = list(flatten(sections["verl"]))
        sections["verl"] = dict(pairs)
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise DataError(f"{where}: verl: {key!r} is set {count} times.")
    return sections


def _variant(tree: Mapping[str, Any], where: str, name: str) -> dict[str, Any]:
    """Return what a variant of the sweep changes."""
    variants = tree.get("sweep") or {}
    if not isinstance(variants, Mapping) or name not in variants:
        known = ", ".join(map(str, variants)) or "none"
        raise UnknownNameError(f"{where}: no variant {name!r} in sweep. Known: {known}.")
    part = variants[name] or {}
    if not isinstance(part, Mapping):
        raise DataError(f"{where}: sweep.{name}: a variant is a part of a recipe, a mapping.")
    changes = flatten_verl_section(part, f"{where}: sweep.{name}")
    return {"name": f"{tree.get('name')}-{name}", **changes}
