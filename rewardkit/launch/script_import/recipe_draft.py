"""The recipe of a script: its settings as fields where recipes have them, and else under `verl:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.plan import DAPO_RECIPE, MISSING, Plan, make_plan
from rewardkit.launch.presets import ACTOR, OVERLONG
from rewardkit.launch.recipe import Dapo, read_recipe
from rewardkit.launch.script_import.launch_script import LaunchScript
from rewardkit.launch.verl.hydra_values import parse_value
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, Release
from rewardkit.registry import is_path

REWARD = "reward.custom_reward_function"
FILTER = "algorithm.filter_groups"
MODEL = "actor_rollout_ref.model.path"
FILES = ("data.train_files", "data.val_files")

#: Sections of verl's configuration that are grouped under `verl:`.
SECTIONS = (
    "actor_rollout_ref.model",
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "actor_rollout_ref.ref",
)

#: Settings for which a recipe has its own default instead of verl's, and why.
OWN_DEFAULTS = {
    "trainer.experiment_name": "the recipe takes its name",
    "critic.model.path": "the recipe's critic starts from the model that is trained",
    "trainer.device": "it follows the recipe's devices",
    f"{ACTOR}.use_torch_compile": "on NPU the recipe turns it off",
    "actor_rollout_ref.ref.use_torch_compile": "on NPU the recipe turns it off",
    f"{ACTOR}.fsdp_config.use_torch_compile": "on NPU the recipe turns it off",
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile": "on NPU the recipe turns it off",
}

#: Settings that are always fields of a recipe.
COUNTS = ("trainer.nnodes", "trainer.n_gpus_per_node")

_INTERPOLATION = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,\s*([^{}]*))?\}")


@dataclass(frozen=True, kw_only=True)
class RecipeDraft:
    """A script's settings on their way into a recipe.

    Attributes:
        settings: the values by verl 0.9.1's names.
        signs: the signs of the settings that the release takes only with a sign.
        script: the script that has them.
        release: the release, as the trainer that the script starts composes it.
        where: the script's file.
    """

    settings: Mapping[str, Any]
    signs: Mapping[str, str]
    script: LaunchScript
    release: Release
    where: str

    def get(self, key: str) -> Any:
        """Return the value of a setting or its default, by its name in any release."""
        latest = self._latest(key)
        if latest in self.settings:
            return self._resolve(self.settings[latest])
        return self.default(latest)

    def sets(self, key: str) -> bool:
        """Whether the script has a setting, by its name in any release."""
        return self._latest(key) in self.settings

    def default(self, key: str) -> Any:
        """Return the default of a setting, by its name in any release; None if there is none."""
        latest = self._latest(key)
        if self.script.module == DAPO_RECIPE:
            for name, value in DAPO_RECIPE_KEYS.items():
                if to_latest_key(name) == latest:
                    return self._resolve(value)
        return self._resolve(self.release.keys.get(self.release.name_of(latest)))

    def _latest(self, key: str) -> str:
        return to_latest_key(key, megatron=self.release.megatron)

    def _resolve(self, value: Any) -> Any:
        """Return a value with interpolations of a single key followed."""
        for _ in range(5):
            match = _INTERPOLATION.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                break
            key = to_latest_key(match[1])
            value = self.settings.get(key, self.release.keys.get(match[1]))
            value = parse_value(match[2]) if value is None and match[2] else value
        return value


def draft_recipe(
    draft: RecipeDraft, env: Mapping[str, str]
) -> tuple[dict[str, Any], list[LaunchFinding], Plan | None]:
    """Return a recipe with the effect of a script, where it differs from the script, and its plan.

    Args:
        draft: the script's settings.
        env: variables of the run.

    Returns:
        The mapping that `read_recipe` takes, its keys in the order of the recipe's model; findings; the
        plan of the recipe, None where it has none, which is a finding.
    """
    findings: list[LaunchFinding] = []
    tree = _fields(draft, findings)
    base = make_plan(read_recipe(tree, draft.where), draft.release.verl)
    own_env = {name: value for name, value in env.items() if base.env.get(name) != value}
    settings, signed = _verl_section(draft, base, findings)
    tree |= {"env": own_env} if own_env else {}
    tree |= {"verl": {**group_by_section(settings), **signed}} if settings or signed else {}
    try:
        plan = make_plan(read_recipe(tree, draft.where), draft.release.verl)
    except RewardkitError as error:
        failure = LaunchFinding("error", "plan", "the recipe", f"cannot be planned: {error}")
        return tree, [*findings, failure], None
    return tree, [*findings, *_differences(draft, plan)], plan


def group_by_section(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested mappings, verl's sections first."""
    return _nest(sorted(flat.items(), key=lambda item: _place(item[0])), _section)


def _place(key: str) -> int:
    order = ("data.", *(f"{s}." for s in SECTIONS), "critic.", "reward.", "algorithm.", "trainer.")
    return next((i for i, name in enumerate(order) if key.startswith(name)), len(order))


def _section(key: str) -> str:
    return next((s for s in SECTIONS if key.startswith(f"{s}.")), key.partition(".")[0])


def _nest(
    items: Iterable[tuple[str, Any]],
    head_of: Callable[[str], str] = lambda key: key.partition(".")[0],
) -> dict[str, Any]:
    heads: dict[str, dict[str, Any]] = {}
    for key, value in items:
        head = head_of(key)
        heads.setdefault(head, {})[key[len(head) + 1 :]] = value
    tree: dict[str, Any] = {}
    for head, below in heads.items():
        if "" in below:  # a key with a value of its own, and with keys below it
            tree[head] = below.pop("")
            tree |= {f"{head}.{rest}": value for rest, value in below.items()}
        else:
            tree |= _join(head, _nest(below.items()))
    return tree


def _join(head: str, inner: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping under its name; a mapping of one key becomes a dotted key."""
    if len(inner) > 1:
        return {head: inner}
    return {f"{head}.{name}": value for name, value in inner.items()}


def _fields(draft: RecipeDraft, findings: list[LaunchFinding]) -> dict[str, Any]:
    """Return the recipe's own fields."""
    algorithm = _algorithm(draft, findings)
    tree: dict[str, Any] = {
        "name": _name(draft),
        "about": f"imported from {Path(draft.where).name}",
        "algorithm": algorithm,
        "strategy": _strategy(draft),
        "devices": _devices(draft, findings),
        "nodes": _count(draft, "trainer.nnodes", 1, findings),
        "devices_per_node": _count(draft, "trainer.n_gpus_per_node", 8, findings),
        "model": _names(draft, MODEL, findings)[0],
        "data": _data(draft, findings),
        "reward": _reward(draft),
    }
    settings = _dapo(draft) if algorithm == "dapo" else {}
    return {**tree, "dapo": settings} if settings else tree


def _devices(draft: RecipeDraft, findings: list[LaunchFinding]) -> str:
    """Return the kind of device; verl's published scripts say it in `DEVICE` and let verl detect it.

    A script for NPUs that sets neither often says so in its name, as in run_dapo_qwen3_8b_npu.sh.
    """
    is_set = draft.sets("trainer.device")
    device = draft.get("trainer.device") if is_set else draft.script.variables.get("DEVICE")
    name = Path(draft.where).stem
    if not device and re.search(r"(?<![a-z])(npu|ascend)(?![a-z])", name.lower()):
        text = f"npu, from the name of the script, {name}; the script itself does not say it."
        fix = "Set devices: gpu in the recipe if it runs on GPUs."
        findings.append(LaunchFinding("info", "devices", "devices", text, fix))
        return "npu"
    return {"npu": "npu", "cpu": "cpu"}.get(str(device), "gpu")


def _algorithm(draft: RecipeDraft, findings: list[LaunchFinding]) -> str:
    estimator = draft.get("algorithm.adv_estimator")
    if estimator == "gae":
        return "ppo"
    if estimator != "grpo":
        text = (
            f"{estimator!r} has no preset: the recipe starts from grpo's and keeps the estimator."
        )
        findings.append(LaunchFinding("info", "algorithm", "algorithm.adv_estimator", text))
    is_dapo = (
        draft.script.module == DAPO_RECIPE,
        draft.get(f"{FILTER}.enable") is True,
        draft.get("reward.reward_manager.name") == "dapo",
        draft.get(f"{ACTOR}.clip_ratio_high") != draft.get(f"{ACTOR}.clip_ratio_low"),
    )
    return "dapo" if any(is_dapo) else "grpo"


def _strategy(draft: RecipeDraft) -> str:
    if draft.release.megatron:
        return "megatron"
    return "fsdp2" if draft.get(f"{ACTOR}.strategy") == "fsdp2" else "fsdp"


def _name(draft: RecipeDraft) -> str:
    name = draft.settings.get("trainer.experiment_name") or Path(draft.where).stem
    return re.sub(r"[^\w.\-]+", "-", str(name)).strip("-.")[:80] or "imported"


def _count(draft: RecipeDraft, key: str, default: int, findings: list[LaunchFinding]) -> int:
    value = draft.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if draft.sets(key):
        text = f"the script has {value!r}, not a whole number from 1 on; the recipe has {default}."
        fix = "Set nodes and devices_per_node in the recipe."
        findings.append(LaunchFinding("warning", "unresolved", key, text, fix))
    return default


def _names(draft: RecipeDraft, key: str, findings: list[LaunchFinding]) -> list[str]:
    """Return the files or the model of a script; verl's default, with a finding, without them."""
    value = draft.get(key)
    names = [str(name) for name in (value if isinstance(value, list) else [value]) if name]
    if draft.sets(key) and not names:
        text = "the script sets it to nothing: it is ??? in the recipe."
        findings.append(LaunchFinding("warning", "incomplete", key, text, "Put the value there."))
        return [MISSING]
    if not draft.sets(key):
        names = [str(draft.default(key))]
        text = f"the script does not set it; the recipe has verl's default, {names[0]}."
        findings.append(
            LaunchFinding("warning", "incomplete", key, text, "Replace it with your own.")
        )
    return names


def _data(draft: RecipeDraft, findings: list[LaunchFinding]) -> dict[str, Any]:
    train, val = (_names(draft, key, findings) for key in FILES)
    every = draft.get("trainer.test_freq")
    off = isinstance(every, int) and every <= 0 and draft.get("trainer.val_before_train") is False
    is_same = train == val and MISSING not in train  # two values that are not known may differ
    if is_same:
        text = "the validation file is the training file: it validates nothing."
        left = f" Validation is off (test_freq={every}); the recipe has no data.val." if off else ""
        fix = "Set data.val to held-out rows or to another set."
        findings.append(LaunchFinding("warning", "L-62", FILES[1], text + left, fix))
    files = {"train": train[0] if len(train) == 1 else train}
    if not (is_same and off):
        files["val"] = val[0] if len(val) == 1 else val
    return files


def _reward(draft: RecipeDraft) -> dict[str, Any]:
    path = draft.settings.get(f"{REWARD}.path")
    if not isinstance(path, str) or not is_path(path) or ":" in path or "$" in path:
        return {"scorer": "verl"}
    name = draft.settings.get(f"{REWARD}.name") or "compute_score"
    below = f"{REWARD}.reward_kwargs."
    options = {k[len(below) :]: v for k, v in draft.settings.items() if k.startswith(below)}
    return {"scorer": f"{path}:{name}", **({"options": options} if options else {})}


def _dapo(draft: RecipeDraft) -> dict[str, Any]:
    """Return DAPO's own settings where they differ from the preset."""
    own: dict[str, Any] = {}
    for name in ("clip_ratio_low", "clip_ratio_high", "clip_ratio_c"):
        value = draft.get(f"{ACTOR}.{name}")
        if _is_number(value) and value != Dapo.model_fields[name].default:
            own[name] = value
    length = draft.get(f"{OVERLONG}.len")
    if draft.get(f"{OVERLONG}.enable") is True and type(length) is int and length > 0:
        factor, log = draft.get(f"{OVERLONG}.penalty_factor"), draft.get(f"{OVERLONG}.log")
        own["overlong_buffer"] = {"len": length}
        own["overlong_buffer"] |= {"penalty_factor": factor} if _is_number(factor) else {}
        own["overlong_buffer"] |= {"log": True} if log is True else {}
    if draft.get(f"{FILTER}.enable") is True:
        own["dynamic_sampling"] = _sampling(draft)
    return own


def _sampling(draft: RecipeDraft) -> dict[str, Any]:
    metric = draft.get(f"{FILTER}.metric")
    most, size = draft.get(f"{FILTER}.max_num_gen_batches"), draft.get("data.gen_batch_size")
    sampling: dict[str, Any] = {"metric": metric if isinstance(metric, str) else "acc"}
    sampling |= {"max_num_gen_batches": most} if type(most) is int and most > 0 else {}
    has_size = draft.sets("data.gen_batch_size") and type(size) is int and size > 0
    return sampling | ({"gen_batch_size": size} if has_size else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _verl_section(
    draft: RecipeDraft, base: Plan, findings: list[LaunchFinding]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what fields do not set: other settings, and verl's defaults that the fields change.

    Returns:
        Settings by their keys, and those that need a sign, or choose a group, by sign and key.
    """
    settings: dict[str, Any] = {}
    signed: dict[str, Any] = {}
    for key, value in draft.settings.items():
        if draft.signs.get(key) or "@" in key or "/" in key:
            signed[f"{draft.signs.get(key, '')}{key}"] = value
        elif not _is_field(key, value, base):
            settings[key] = value
    for key, value in base.settings.items():
        default = draft.default(key)
        if key in draft.settings or default is None or _same(value, _planned(key, default)):
            continue
        if key in OWN_DEFAULTS:
            text = f"the script does not set it (verl's default: {default}); {OWN_DEFAULTS[key]} ({value})."
            findings.append(LaunchFinding("info", "differs", key, text))
        else:
            settings[key] = default
    return settings, signed


def _is_field(key: str, value: Any, base: Plan) -> bool:
    """Whether a recipe's own fields have the effect of a setting."""
    recipe = base.recipe
    if key == "trainer.device" and recipe.devices == "gpu":
        return bool(value == "cuda")
    if key in {f"{ACTOR}.strategy", "model_engine"} and value == recipe.strategy:
        return True
    empty = key in {MODEL, *FILES} and _is_empty(value)
    return (
        key in COUNTS
        or empty
        or (key in base.settings and _same(base.settings[key], _planned(key, value)))
    )


def _is_empty(value: Any) -> bool:
    return not any(value) if isinstance(value, list) else not value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other) or repr(one) == repr(other)


def _planned(key: str, value: Any) -> Any:
    """Return a value as a plan has it: `~` is expanded, a reward file's path is absolute."""
    if key == f"{REWARD}.path" and isinstance(value, str) and is_path(value):
        return str(Path(value).expanduser().absolute())
    if key in FILES and isinstance(value, list):
        expanded = [_planned(key, str(name)) for name in value]
        return expanded[0] if len(expanded) == 1 else expanded
    if key in FILES and isinstance(value, str) and value.startswith("~"):
        return str(Path(value).expanduser())
    return value


def _differences(draft: RecipeDraft, plan: Plan) -> Iterator[LaunchFinding]:
    """Yield where the plan of the recipe differs from the script."""
    for key, value in draft.settings.items():
        is_group = "@" in key or "/" in key or key == "model_engine" or key.startswith("hydra.")
        has_finding = key in COUNTS or (key in {MODEL, *FILES} and _is_empty(value))
        if is_group or has_finding or draft.signs.get(key) == "~":
            continue
        planned = plan.settings.get(key, plan.get(key))
        if not _same(planned, _planned(key, value)):
            yield LaunchFinding(
                "warning", "differs", key, f"the script has {value!r}, the recipe {planned!r}."
            )
