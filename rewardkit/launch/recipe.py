"""A recipe: the decisions about a run, in YAML.

A recipe has fields for the decisions that rewardkit computes with: algorithm, devices, data, reward
and cluster. All other settings are verl's, with verl's names, under `verl:`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)

from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.launch.overrides import flatten
from rewardkit.launch.verl.releases import LATEST, release_of
from rewardkit.registry import did_you_mean
from rewardkit.strict_yaml import fault_text, read_yaml_file

FOLDER = Path(__file__).parent / "recipes"

#: The value of a setting that a person must fill in, as in OmegaConf.
MISSING = "???"

#: Words of other tools, and the recipe's words for them.
_ALIASES = {"cuda": "gpu", "ascend": "npu", "dapo_trainer": "dapo", "gae": "ppo"}

#: An example of each section, for a recipe that has a single value in its place.
_SECTIONS = {
    "data": "data: {train: FILE.parquet}",
    "reward": "reward: {scorer: NAME}",
    "cluster": "cluster: {target: NAME}",
    "dapo": "dapo: {clip_ratio_high: 0.28}",
    "dapo.overlong_buffer": "overlong_buffer: {len: 4096}",
    "dapo.dynamic_sampling": "dynamic_sampling: {metric: acc}",
}

Target = Literal[
    "local", "ray-job", "script", "slurm", "kuberay", "skypilot", "ascend", "modelarts"
]


def _pattern_validator(pattern: str, rule: str) -> AfterValidator:
    def validate(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{text!r} {rule}.")
        return text

    return AfterValidator(validate)


#: Text that is not empty.
Text = Annotated[str, Field(min_length=1)]
#: Text for a Slurm option in a comment, or the name of a device.
Word = Annotated[
    str,
    _pattern_validator(
        r"[\w.:,+=/@%\[\]-]+", "may have letters, digits and . _ : , + = / @ % [ ] -"
    ),
]
#: The name of an object of Kubernetes.
KubernetesName = Annotated[
    str,
    _pattern_validator(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "may have lower-case letters, digits and -, up to 63, and no - at either end",
    ),
]
#: The name of an environment variable.
Variable = Annotated[str, _pattern_validator(r"[A-Za-z_]\w*", "is not the name of a variable")]
#: A number of things, at least one.
Count = Annotated[int, Field(gt=0, strict=True)]
#: A port that needs no privileges.
Port = Annotated[int, Field(ge=1024, le=65535, strict=True)]


class Section(BaseModel):
    """A mapping of a recipe; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Data(Section):
    """The parquet files.

    Attributes:
        train: training files, by the paths that every node sees.
        val: validation files; none turns validation off.
        prepare: the commands that write the files, for information.
    """

    train: list[Text] = Field(min_length=1)
    val: list[Text] = Field(default_factory=list)
    prepare: list[str] = Field(default_factory=list)

    @field_validator("train", "val", "prepare", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


class OverlongBuffer(Section):
    """DAPO's soft length penalty: it grows to `penalty_factor` over the last `len` tokens."""

    len: Count
    penalty_factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    log: bool = False


class DynamicSampling(Section):
    """DAPO's dynamic sampling: groups whose responses all have one `metric` are replaced.

    Attributes:
        metric: a key that the reward returns (`acc`), or a metric of verl.
        max_num_gen_batches: the run ends where a step needs more rounds; 0 for no limit. verl 0.9
            ignores it.
        gen_batch_size: prompts per round. verl 0.9 ignores it.
    """

    metric: str = "acc"
    max_num_gen_batches: int = 0
    gen_batch_size: Count | None = None


class Dapo(Section):
    """Settings of DAPO; other algorithms do not use them."""

    clip_ratio_low: float = Field(default=0.2, gt=0, allow_inf_nan=False)
    clip_ratio_high: float = Field(default=0.28, gt=0, allow_inf_nan=False)
    clip_ratio_c: float = Field(default=10.0, gt=1, allow_inf_nan=False)
    overlong_buffer: OverlongBuffer | None = None
    dynamic_sampling: DynamicSampling | None = None


class RewardGuard(Section):
    """How a custom reward is guarded; `rewardkit guard --help` says what each setting does.

    Attributes:
        seconds: timeout per call, in seconds.
        cpu_seconds: limit of CPU time per call, in seconds; 0 for none.
        memory_mb: memory for calls per process, in MiB; 0 for no limit.
        workers: maximum number of processes for each process of verl that scores.
        wrong_score: score of a failed call; by default the lowest of a wrong response.
        right_score: lowest score of a right answer; by default what the first golds get.
        keys: further numeric keys of its results, which a trial on the first rows did not show.
        on_failure: what to do when the reward fails too often.
        stop_share: share of failed calls above which it fails too often.
    """

    seconds: float = Field(default=5.0, gt=0, le=86_400)
    cpu_seconds: float = Field(default=0.0, ge=0, le=86_400)
    memory_mb: int = Field(default=8192, ge=0)
    workers: Count = 4
    wrong_score: float | None = Field(default=None, allow_inf_nan=False)
    right_score: float | None = Field(default=None, allow_inf_nan=False)
    keys: list[Text] = Field(default_factory=list)
    on_failure: Literal["stop", "score"] = "stop"
    stop_share: float = Field(default=0.5, ge=0, le=1)


class RewardSettings(Section):
    """The reward function.

    Attributes:
        scorer: the name of a scorer, `my_reward.py:compute_score`, or `verl` for verl's own scorer
            of each data_source.
        options: the scorer's options.
        record: folder in which the run records its rewards, on storage that every node sees; a
            relative path starts in the folder of the launch.
        guard: runs a custom scorer in child processes with deadlines; an empty mapping for the
            defaults.
    """

    scorer: str = "auto"
    options: dict[str, Any] = Field(default_factory=dict)
    record: Text | None = None
    guard: RewardGuard | None = None
    _guard_file: str = PrivateAttr("")

    @property
    def guard_file(self) -> str:
        """The file that guards the scorer, once `reward_guard.guard_reward` has written it."""
        return self._guard_file

    def with_guard_file(self, path: str) -> "RewardSettings":
        """Return a copy that names the file that guards the scorer."""
        copy = self.model_copy()
        copy._guard_file = path  # noqa: SLF001 - of this class
        return copy


class Cluster(Section):
    """The machines of the run.

    Attributes:
        target: how the run is launched.
        address: URL of the Ray cluster's job server (ray-job), like http://head:8265.
        head: host or address of the head node (ascend).
        port: port of Ray's GCS on the head node.
        dashboard_port: port of Ray's dashboard and job server.
        interface: network interface between the nodes; found automatically by default.
        wait_s: seconds that the head node waits for the other nodes.
        workdir: folder on every node in which verl is started.
        python: interpreter on the nodes.
        setup: shell lines that every node runs first (conda activate, source set_env.sh).
        image: container image (kuberay, skypilot, modelarts).
        partition: Slurm partition.
        account: Slurm account.
        time_limit: Slurm time limit.
        namespace: Kubernetes namespace.
        volumes: Kubernetes volume claims, each with the folder it is mounted at.
        model_name: the name of the model in AscendFactory (modelarts).
        detach: whether `train` exits once a job is submitted, instead of following it (ray-job).
        accelerator: the name of the GPU in SkyPilot, like H100.
        device_resource: the device's resource name at this site, for Slurm's --gres or Kubernetes'
            limits, if it is not the usual one.
    """

    target: Target = "local"
    address: str = "http://127.0.0.1:8265"
    head: str | None = None
    port: Port = 6379
    dashboard_port: Port = 8265
    interface: str | None = None
    wait_s: int = Field(default=600, gt=0)
    workdir: str = "."
    python: str = "python3"
    setup: list[str] = Field(default_factory=list)
    image: str | None = None
    partition: Word | None = None
    account: Word | None = None
    time_limit: Word | None = None
    namespace: KubernetesName = "default"
    volumes: dict[str, str] = Field(default_factory=dict)
    model_name: str | None = None
    detach: bool = False
    accelerator: str | None = None
    device_resource: Word | None = None


class Recipe(Section):
    """A run.

    Attributes:
        name: name of the run; verl's experiment_name unless `verl:` sets one.
        about: what the run trains, in one line.
        source: where the settings come from.
        hardware: the hardware that the settings were made for.
        expect: the result to expect.
        algorithm: the algorithm's preset (`presets.ALGORITHMS`).
        strategy: the training backend of the actor.
        devices: the kind of device.
        nodes: number of nodes.
        devices_per_node: number of devices on each node.
        model: a Hugging Face id, or a path that every node sees.
        data: the parquet files.
        reward: the reward function.
        dapo: settings of DAPO.
        cluster: the machines of the run.
        env: environment variables that all nodes share.
        verl: settings by verl's names, nested or dotted; they win over every field above.
        sweep: variants by name; each is a part of a recipe that is merged into this one.
    """

    name: str = Field(pattern=r"^[^/\\\x00-\x1f]+$")
    about: str = ""
    source: str = ""
    hardware: str = ""
    expect: str = ""
    algorithm: Literal["ppo", "grpo", "dapo", "gdpo"]
    strategy: Literal["fsdp", "fsdp2", "megatron"] = "fsdp"
    devices: Literal["gpu", "npu", "cpu"] = "gpu"
    nodes: Count = 1
    devices_per_node: Count = 8
    model: str = Field(min_length=1)
    data: Data
    reward: RewardSettings = RewardSettings()
    dapo: Dapo = Dapo()
    cluster: Cluster = Cluster()
    env: dict[Variable, str] = Field(default_factory=dict)
    verl: dict[str, Any] = Field(default_factory=dict)
    sweep: dict[str, dict[str, Any] | None] = Field(default_factory=dict)

    @field_validator("env", mode="before")
    @classmethod
    def _as_strings(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        words = {True: "1", False: "0"}
        return {k: words[v] if isinstance(v, bool) else v for k, v in value.items()}


def built_in() -> list[str]:
    """Return the names of the recipes that come with rewardkit."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def recipe_path(name: str) -> Path:
    """Return the file of a built-in recipe, or of a path that ends in `.yaml` or `.yml`."""
    path = Path(name).expanduser()
    if path.suffix in {".yaml", ".yml"}:
        if not path.is_file():
            problem = "a folder, not a file" if path.is_dir() else "no such file"
            raise SourceError(f"{name}: {problem}.")
        return path
    if name not in built_in():
        raise UnknownNameError(
            f"unknown recipe {name!r}.{did_you_mean(name, built_in())} "
            f"Known: {', '.join(built_in())}; a file of your own ends in .yaml."
        )
    return FOLDER / f"{name}.yaml"


def load_tree(name: str) -> dict[str, Any]:
    """Read a recipe's YAML without validating it."""
    path = recipe_path(name)
    tree = read_yaml_file(path)
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


def read_recipe(
    tree: Mapping[str, Any], where: str, variant: str | None = None, fields: Sequence[str] = ()
) -> Recipe:
    """Validate a recipe's YAML, with a variant of its sweep merged into it.

    `where` is its name or file; a mistake in one of the `fields` of the command line is a UsageError.
    """
    _require_writable(tree, where)
    tree = flatten_verl_section(tree, where)
    if variant is not None:
        tree = deep_merge(tree, _variant_changes(tree, where, variant))
    return _validate(tree, where, fields)


def merge_fields(recipe: Recipe, fields: Mapping[str, Any], where: str) -> Recipe:
    """Return a recipe with fields replaced; in `data`, only the files in `fields` are replaced."""
    _require_writable(fields, where)
    changed = dict(fields)
    if "data" in changed:
        changed["data"] = {**dict(recipe.data), **changed["data"]}
    return _validate({**dict(recipe), **changed}, where)


def _validate(tree: Mapping[str, Any], where: str, fields: Sequence[str] = ()) -> Recipe:
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        lines, is_ours = [], []
        for each in error.errors():
            name = ".".join(map(str, each["loc"]))
            is_ours.append(any(f"{name}.".startswith(f"{field}.") for field in fields))
            text = fault_text(Recipe, each, "--set" if is_ours[-1] else where)
            lines.append(text + _hint(name, each["type"], str(each["input"])))
        raise (UsageError if all(is_ours) else DataError)("\n".join(lines)) from None


def _hint(name: str, fault: str, value: str) -> str:
    """Return a sentence on where a key of verl belongs, or how verl's and other tools' words are said here."""
    if fault == "model_type" and name in _SECTIONS:
        return f" An example: `{_SECTIONS[name]}`."
    if fault == "literal_error" and value.lower() in _ALIASES:
        return f" Did you mean {_ALIASES[value.lower()]!r}?"
    if fault != "extra_forbidden":
        return ""
    keys = release_of(LATEST).keys
    if "." not in name and any(key.startswith(f"{name}.") for key in keys):
        return " Settings of verl stand under `verl:`."
    ending = next((key for key in keys if key.endswith(f".{name}")), "")
    return f" verl has {ending}: write it under `verl:`." if ending else ""


def _require_writable(value: Any, where: str) -> None:
    """Refuse text that neither a file nor a command can hold."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _require_writable(key, where)
            _require_writable(item, f"{where}: {key}")
    elif isinstance(value, list):
        for item in value:
            _require_writable(item, where)
    elif isinstance(value, str) and re.search("[\0\ud800-\udfff]", value):
        raise DataError(f"{where}: {value!r} has a NUL or a lone surrogate; leave it out.")


def flatten_verl_section(tree: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the tree without empty sections, and with dotted keys under `verl:`."""
    sections = {key: value for key, value in tree.items() if value is not None}
    if isinstance(sections.get("verl"), Mapping):
        pairs = list(flatten(sections["verl"]))
        sections["verl"] = dict(pairs)
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise DataError(f"{where}: verl: {key!r} is set {count} times.")
    return sections


def _variant_changes(tree: Mapping[str, Any], where: str, name: str) -> dict[str, Any]:
    variants = tree.get("sweep") or {}
    if not isinstance(variants, Mapping) or name not in variants:
        known = ", ".join(map(str, variants)) or "none"
        raise UnknownNameError(f"{where}: no variant {name!r} in sweep. Known: {known}.")
    part = variants[name] or {}
    if not isinstance(part, Mapping):
        raise DataError(f"{where}: sweep.{name}: a variant is a part of a recipe, a mapping.")
    changes = flatten_verl_section(part, f"{where}: sweep.{name}")
    return {"name": f"{tree.get('name')}-{name}", **changes}
