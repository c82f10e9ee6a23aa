"""The recipe that has the effect of a script's settings: fields where it has them, else `verl:`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.plan import DAPO_RECIPE, Plan, make_plan
from rewardkit.launch.presets import ACTOR, OVERLONG
from rewardkit.launch.recipe import Dapo, read_recipe
from rewardkit.launch.script_import.launch_script import LaunchScript
from rewardkit.launch.verl.hydra_values import parse_value
from rewardkit.launch.verl.key_renames import to_latest_key, to_release_key
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS as DAPO_DEFAULTS
from rewardkit.launch.verl.releases import Release
from rewardkit.registry import is_path

REWARD = "reward.custom_reward_function"
FILTER = "algorithm.filter_groups"
MODEL = "actor_rollout_ref.model.path"
FILES = ("data.train_files", "data.val_files")

#: The parts of verl's configuration that stand together under `verl:`.
SECTIONS = (
    "actor_rollout_ref.model",
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "actor_rollout_ref.ref",
)

#: What a recipe decides by itself where a script says nothing, instead of verl's default.
OURS = {
    "trainer.experiment_name": "the recipe takes its name",
    "critic.model.path": "the recipe's critic starts from the model that is trained",
    f"{ACTOR}.fsdp_config.use_torch_compile": "on NPU the recipe turns it off",
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile": "on NPU the recipe turns it off",
}

#: Settings that are fields of a recipe in any case, whatever the script has there.
COUNTS = ("trainer.nnodes", "trainer.n_gpus_per_node")

_INTERPOLATION = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,\s*([^{}]*))?\}")


@dataclass(frozen=True)
class Draft:
    """A script's settings on their way into a recipe.

    Attributes:
        settings: by verl 0.9.1's names, each once.
        signs: of the settings that the release takes only with their sign.
        script: what they are of.
        target: the release.
        kind: `megatron` and `dapo_recipe` of the trainer that the script starts.
        where: the script's file.
    """

    settings: Mapping[str, Any]
    signs: Mapping[str, str]
    script: LaunchScript
    target: Release
    kind: Mapping[str, bool]
    where: str

    def get(self, key: str) -> Any:
        """What a setting is, given or by default."""
        return self._followed(self.settings[key]) if key in self.settings else self.default(key)

    def default(self, key: str) -> Any:
        """What a setting is that the script does not give; None where there is no such setting."""
        if self.script.module == DAPO_RECIPE:
            for name, value in DAPO_DEFAULTS.items():
                if to_latest_key(name) == key:
                    return self._followed(value)
        return self._followed(
            self.target.keys.get(to_release_key(key, self.target.number, **self.kind))
        )

    def _followed(self, value: Any) -> Any:
        """A value with interpolations of a single key resolved."""
        for _ in range(5):
            match = _INTERPOLATION.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                break
            key = to_latest_key(match[1])
            value = self.settings.get(key, self.target.keys.get(match[1]))
            value = parse_value(match[2]) if value is None and match[2] else value
        return value


def drafted(draft: Draft, env: Mapping[str, str]) -> tuple[dict[str, Any], list[LaunchFinding]]:
    """A recipe with the effect of a script, and where it differs from the script.

    Args:
        draft: the script's settings.
        env: variables of the run.

    Returns:
        The mapping that `read_recipe` takes, its keys in the order of the recipe's model.
    """
    found: list[LaunchFinding] = []
    tree = _fields(draft, found)
    base = make_plan(read_recipe(tree, draft.where), draft.target.verl)
    kept = {name: value for name, value in env.items() if base.env.get(name) != value}
    rest, signed = _rest(draft, base, found)
    tree |= {"env": kept} if kept else {}
    tree |= {"verl": {**grouped(rest), **signed}} if rest or signed else {}
    return tree, [*found, *_differences(draft, tree)]


def grouped(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as mappings: verl's sections, and below them what belongs together."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in sorted(flat.items(), key=lambda item: _place(item[0])):
        section = next((s for s in SECTIONS if key.startswith(f"{s}.")), key.partition(".")[0])
        sections.setdefault(section, {})[key[len(section) + 1 :]] = value
    tree: dict[str, Any] = {}
    for section, below in sections.items():
        if "" in below:
            tree[section] = below.pop("")
            tree |= {f"{section}.{rest}": value for rest, value in below.items()}
        else:
            tree |= _joined(section, _nested(below))
    return tree


def _place(key: str) -> int:
    order = ("data.", *(f"{s}." for s in SECTIONS), "critic.", "reward.", "algorithm.", "trainer.")
    return next((i for i, name in enumerate(order) if key.startswith(name)), len(order))


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    heads: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        head, _, rest = key.partition(".")
        heads.setdefault(head, {})[rest] = value
    tree: dict[str, Any] = {}
    for head, below in heads.items():
        if "" in below:  # a value, and settings below it: both stand here
            tree[head] = below.pop("")
            tree |= {f"{head}.{rest}": value for rest, value in below.items()}
        else:
            tree |= _joined(head, _nested(below))
    return tree


def _joined(head: str, inner: dict[str, Any]) -> dict[str, Any]:
    """A mapping under its name; one of a single key becomes a dotted key."""
    if len(inner) > 1:
        return {head: inner}
    return {f"{head}.{name}": value for name, value in inner.items()}


def _fields(draft: Draft, found: list[LaunchFinding]) -> dict[str, Any]:
    """The fields of the recipe's own."""
    algorithm = _algorithm(draft, found)
    tree: dict[str, Any] = {
        "name": _name(draft),
        "about": f"imported from {Path(draft.where).name}",
        "algorithm": algorithm,
        "strategy": _strategy(draft),
        "devices": {"npu": "npu", "cpu": "cpu"}.get(str(draft.get("trainer.device")), "gpu"),
        "nodes": _count(draft, "trainer.nnodes", 1, found),
        "devices_per_node": _count(draft, "trainer.n_gpus_per_node", 8, found),
        "model": _given(draft, MODEL, found)[0],
        "data": _data(draft, found),
        "reward": _reward(draft),
    }
    settings = _dapo(draft) if algorithm == "dapo" else {}
    return {**tree, "dapo": settings} if settings else tree


def _algorithm(draft: Draft, found: list[LaunchFinding]) -> str:
    estimator = draft.get("algorithm.adv_estimator")
    if estimator == "gae":
        return "ppo"
    if estimator != "grpo":
        text = (
            f"{estimator!r} has no preset: the recipe starts from grpo's and keeps the estimator."
        )
        found.append(LaunchFinding("info", "algorithm", "algorithm.adv_estimator", text))
    own = (
        draft.script.module == DAPO_RECIPE,
        draft.get(f"{FILTER}.enable") is True,
        draft.get("reward.reward_manager.name") == "dapo",
        draft.get(f"{ACTOR}.clip_ratio_high") != draft.get(f"{ACTOR}.clip_ratio_low"),
    )
    return "dapo" if any(own) else "grpo"


def _strategy(draft: Draft) -> str:
    if draft.kind["megatron"]:
        return "megatron"
    return "fsdp2" if draft.get(f"{ACTOR}.strategy") == "fsdp2" else "fsdp"


def _name(draft: Draft) -> str:
    given = draft.settings.get("trainer.experiment_name") or Path(draft.where).stem
    return re.sub(r"[^\w.\-]+", "-", str(given)).strip("-.")[:80] or "imported"


def _count(draft: Draft, key: str, default: int, found: list[LaunchFinding]) -> int:
    value = draft.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if key in draft.settings:
        text = (
            f"the script has {value!r}, which is not a positive integer; the recipe has {default}."
        )
        fix = "Set nodes and devices_per_node in the recipe."
        found.append(LaunchFinding("warning", "unresolved", key, text, fix))
    return default


def _given(draft: Draft, key: str, found: list[LaunchFinding]) -> list[str]:
    """Files, or the model; where the script gives none, verl's own default, with a finding."""
    value = draft.get(key)
    names = [str(name) for name in (value if isinstance(value, list) else [value]) if name]
    if key not in draft.settings or not names:
        names = [str(draft.default(key))]
        text = f"the script does not give it; the recipe has verl's default, {names[0]}."
        found.append(LaunchFinding("warning", "incomplete", key, text, "Put your own there."))
    return names


def _data(draft: Draft, found: list[LaunchFinding]) -> dict[str, Any]:
    train, val = (_given(draft, key, found) for key in FILES)
    every = draft.get("trainer.test_freq")
    off = isinstance(every, int) and every <= 0 and draft.get("trainer.val_before_train") is False
    if train == val:
        text = "the validation file is the training file: it validates nothing."
        left = f" Validation is off (test_freq={every}); the recipe has no data.val." if off else ""
        fix = "Keep some rows apart, or take another set, for data.val."
        found.append(LaunchFinding("warning", "L-62", FILES[1], text + left, fix))
    files = {"train": train[0] if len(train) == 1 else train}
    if train != val or not off:
        files["val"] = val[0] if len(val) == 1 else val
    return files


def _reward(draft: Draft) -> dict[str, Any]:
    path = draft.settings.get(f"{REWARD}.path")
    if not isinstance(path, str) or not is_path(path) or ":" in path or "$" in path:
        return {"scorer": "verl"}
    name = draft.settings.get(f"{REWARD}.name") or "compute_score"
    below = f"{REWARD}.reward_kwargs."
    options = {k[len(below) :]: v for k, v in draft.settings.items() if k.startswith(below)}
    return {"scorer": f"{path}:{name}", **({"options": options} if options else {})}


def _dapo(draft: Draft) -> dict[str, Any]:
    """What is DAPO's alone, where it is not as in the preset."""
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


def _sampling(draft: Draft) -> dict[str, Any]:
    metric = draft.get(f"{FILTER}.metric")
    most, size = draft.get(f"{FILTER}.max_num_gen_batches"), draft.get("data.gen_batch_size")
    sampling: dict[str, Any] = {"metric": metric if isinstance(metric, str) else "acc"}
    sampling |= {"max_num_gen_batches": most} if type(most) is int and most > 0 else {}
    given = "data.gen_batch_size" in draft.settings and type(size) is int and size > 0
    return sampling | ({"gen_batch_size": size} if given else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rest(
    draft: Draft, base: Plan, found: list[LaunchFinding]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the fields do not say: the script's other settings, and verl's defaults that they hide.

    Returns:
        Settings by their keys, and those that need a sign, or choose a group, by sign and key.
    """
    rest: dict[str, Any] = {}
    signed: dict[str, Any] = {}
    for key, value in draft.settings.items():
        if draft.signs.get(key) or "@" in key or "/" in key:
            signed[f"{draft.signs.get(key, '')}{key}"] = value
        elif not _is_said(key, value, base):
            rest[key] = value
    for key, value in base.settings.items():
        default = draft.default(key)
        if key in draft.settings or default is None or _same(value, _expanded(key, default)):
            continue
        if key in OURS:
            text = (
                f"the script does not give it (verl's default: {default}); {OURS[key]} ({value})."
            )
            found.append(LaunchFinding("info", "differs", key, text))
        else:
            rest[key] = default
    return rest, signed


def _is_said(key: str, value: Any, base: Plan) -> bool:
    """Whether a recipe's own fields say a setting already."""
    recipe = base.recipe
    if key == "trainer.device" and recipe.devices == "gpu":
        return bool(value == "cuda")
    if key in {f"{ACTOR}.strategy", "model_engine"} and value == recipe.strategy:
        return True
    empty = key in {MODEL, *FILES} and not value
    return (
        key in COUNTS
        or empty
        or (key in base.settings and _same(base.settings[key], _expanded(key, value)))
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other) or repr(one) == repr(other)


def _expanded(key: str, value: Any) -> Any:
    """A value as the plan has it: it expands `~`, and makes the path of a reward file absolute."""
    if key == f"{REWARD}.path" and isinstance(value, str) and is_path(value):
        return str(Path(value).expanduser().absolute())
    if key in FILES and isinstance(value, list):
        expanded = [_expanded(key, str(name)) for name in value]
        return expanded[0] if len(expanded) == 1 else expanded
    if key in FILES and isinstance(value, str) and value.startswith("~"):
        return str(Path(value).expanduser())
    return value


def _differences(draft: Draft, tree: Mapping[str, Any]) -> Iterator[LaunchFinding]:
    """What the recipe does not do as the script has it: found by planning it."""
    try:
        plan = make_plan(read_recipe(tree, draft.where), draft.target.verl)
    except RewardkitError as error:
        yield LaunchFinding("error", "plan", "the recipe", f"cannot be planned: {error}")
        return
    for key, value in draft.settings.items():
        is_group = "@" in key or "/" in key or key == "model_engine" or key.startswith("hydra.")
        told = key in COUNTS or (key in {MODEL, *FILES} and not value)
        if is_group or told or draft.signs.get(key) == "~":
            continue
        got = plan.settings.get(key, plan.get(key))
        if not _same(got, _expanded(key, value)):
            yield LaunchFinding(
                "warning", "differs", key, f"the script has {value!r}, the recipe {got!r}."
            )
