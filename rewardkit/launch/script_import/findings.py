"""What a release of verl makes of the settings of somebody's script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.verl.key_renames import IgnoredKey, ignored_key, to_latest_key, to_release_key
from rewardkit.launch.verl.releases import Release, known_releases, release_of
from rewardkit.registry import did_you_mean

#: Unknown keys for which the nearest known one is looked for; each costs some milliseconds.
MAX_SUGGESTIONS = 20

OLD_REWARD = "custom_reward_function."


@dataclass(frozen=True)
class ImportedSetting:
    """One setting of a script.

    Attributes:
        key: as it was written.
        value: a Python value.
        sign: what stands before the key.
        line: of the script.
        group: whether it chooses a group of Hydra's.
    """

    key: str
    value: Any
    sign: str
    line: int
    group: bool = False

    @property
    def canonical(self) -> str:
        """The key's name in verl 0.9.1."""
        return self.key if self.group else to_latest_key(self.key)


def is_known(setting: ImportedSetting) -> bool:
    """Whether a key means something: to some release, or because a sign says that it is meant."""
    if setting.group or setting.sign in {"+", "++"}:
        return True
    names = {setting.key, setting.canonical}
    return any(_takes(known, name) for known in _all_releases() for name in names)


def _takes(known: Release, key: str) -> bool:
    """Whether a release has a key, or an open place for it in a section that it has."""
    return known.lists(key) or (known.open_at(key) and known.lists(key.partition(".")[0]))


def unknown_findings(unknown: Iterable[ImportedSetting]) -> Iterator[LaunchFinding]:
    """A finding for each key that no release knows, with the nearest known one."""
    for i, setting in enumerate(unknown):
        near = _nearest(setting.key) if i < MAX_SUGGESTIONS else ""
        yield LaunchFinding(
            "error",
            "L-76",
            setting.key,
            f"no release of verl has such a key (line {setting.line}); it is not in the recipe.{near}",
            "Write it right under verl:, or with + if something reads it that verl does not list.",
        )


def release_findings(
    settings: Iterable[ImportedSetting], target: Release, kind: Mapping[str, bool]
) -> list[LaunchFinding]:
    """What a release does not do as the script has it; a lost reward function is the only error.

    Args:
        settings: of the script, known ones.
        target: the release, with the keys of the trainer that the script starts.
        kind: `megatron` and `dapo_recipe` of that trainer.
    """
    ignored: dict[IgnoredKey, list[ImportedSetting]] = {}
    others: list[LaunchFinding] = []
    for setting in settings:
        if setting.group or setting.sign == "~":
            continue
        if entry := ignored_key(setting.key, target.number, **kind):
            ignored.setdefault(entry, []).append(setting)
        else:
            others += _resolves(setting, target, kind)
    return [*(_dead(entry, keys, target, kind) for entry, keys in ignored.items()), *others]


def repeated_findings(settings: Iterable[ImportedSetting]) -> Iterator[LaunchFinding]:
    """Settings that are given more than once, under one name or under an old and a new one."""
    given: dict[str, list[ImportedSetting]] = {}
    for setting in settings:
        given.setdefault(setting.canonical, []).append(setting)
    for times in given.values():
        if len(times) == 1:
            continue
        lines = _listed(list(dict.fromkeys(str(setting.line) for setting in times)))
        lines = f"line{'s' * (',' in lines)} {lines}"
        names = _listed(list(dict.fromkeys(setting.key for setting in times)))
        if all(setting.value == times[0].value for setting in times):
            yield LaunchFinding("info", "L-76", names, f"given more than once ({lines}), the same.")
        else:
            text = f"given more than once ({lines}) with different values"
            last = f"the last one counts: {times[-1].value!r}."
            yield LaunchFinding("warning", "L-76", names, f"{text}; {last}", "Delete the others.")


def _dead(
    entry: IgnoredKey, keys: list[ImportedSetting], target: Release, kind: Mapping[str, bool]
) -> LaunchFinding:
    names = _listed([setting.key for setting in keys])
    path = next((setting.value for setting in keys if setting.key == f"{OLD_REWARD}path"), None)
    if entry.key == OLD_REWARD and isinstance(path, str):
        return LaunchFinding(
            "error",
            "reward-ignored",
            names,
            f"verl {target.verl} trains WITHOUT the reward function of this script ({path}): it "
            "takes these keys and ignores them without a word, and its own scorer of each "
            "data_source decides instead.",
            "The recipe has the function where this verl reads it (reward.custom_reward_function).",
        )
    news = {to_release_key(setting.canonical, target.number, **kind) for setting in keys}
    kept = sorted(n for n in news if n and not ignored_key(n, target.number, **kind))
    named = "The recipe has it so." if "use " in entry.why else f"The recipe has {_listed(kept)}."
    fix = named if kept else "It is left out of the command."
    rule = "does-not-start" if entry.fatal else "ignored"
    return LaunchFinding("warning", rule, names, f"verl {target.verl}: {entry.why}.", fix)


def _resolves(
    setting: ImportedSetting, target: Release, kind: Mapping[str, bool]
) -> Iterator[LaunchFinding]:
    """What Hydra makes of a key that the release reads under this or another name."""
    verl, key = f"verl {target.verl}", setting.key
    if target.lists(key):
        default = target.keys.get(key)
        if setting.sign == "+" and default is not None and not isinstance(default, (dict, list)):
            text = f"{verl} lists the key, and refuses a + before one that it has."
            yield LaunchFinding("warning", "plus", key, text, "The recipe has it without.")
        return
    new = to_release_key(setting.canonical, target.number, **kind)
    reads = bool(new) and (target.lists(new) or target.open_at(new))
    if reads and new != key:
        does = "is read by nothing" if setting.sign else "does not start with it"
        text = f"{verl} {does}: the key is {new} there."
        yield LaunchFinding("warning", "renamed", key, text, "The recipe has it so.")
    elif reads and not setting.sign:
        text = f"{verl} takes it only with a + before it."
        yield LaunchFinding("warning", "plus", key, text, "The command of the recipe has one.")
    elif not reads:
        yield _unread(setting, target, kind)


def _unread(setting: ImportedSetting, target: Release, kind: Mapping[str, bool]) -> LaunchFinding:
    """A key that the release has under no name."""
    other = release_of(target.verl, megatron=not kind["megatron"])
    if other.lists(setting.key):
        engine = "FSDP" if kind["megatron"] else "Megatron"
        text = f"a setting of {engine}, and this run is not of it."
        return LaunchFinding(
            "warning", "engine", setting.key, text, "It is left out of the command."
        )
    where = [r.verl for r in _all_releases() if r.lists(setting.key) or r.lists(setting.canonical)]
    if where:
        text = f"verl {target.verl} has no such setting (verl {where[0]} has)."
        return LaunchFinding("warning", "no-such-setting", setting.key, text)
    text = f"no release of verl lists it.{_nearest(setting.key)}"
    return LaunchFinding("warning", "plus", setting.key, text, "See that something reads it.")


@cache
def _all_releases() -> tuple[Release, ...]:
    """The newest first, each with FSDP's and Megatron's keys, and those of verl's DAPO recipe."""
    return tuple(
        release_of(version, megatron=megatron, dapo_recipe=True)
        for version in reversed(known_releases())
        for megatron in (False, True)
    )


@cache
def _all_keys() -> dict[str, None]:
    return {key: None for known in _all_releases() for key in known.keys if "_target_" not in key}


@cache
def _nearest(key: str) -> str:
    """A sentence with the nearest keys: those it is the end of, or those spelt alike."""
    ends = [known for known in _all_keys() if known.endswith(f".{key}")]
    if 0 < len(ends) <= 3:
        return f" Did you mean {' or '.join(repr(known) for known in ends)}?"
    return did_you_mean(key, list(_all_keys())) if len(key) <= 120 else ""


def _listed(names: list[str]) -> str:
    """Names in a row: not more than six of them."""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
