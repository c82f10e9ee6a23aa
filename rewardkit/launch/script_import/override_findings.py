"""Findings about the settings of a script: how a release of verl treats each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.plan import ENGINE_SINCE
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.verl.key_renames import IgnoredKey, gone_keys, to_latest_key
from rewardkit.launch.verl.releases import Release, known_releases, release_of, snapshots
from rewardkit.registry import did_you_mean

#: Unknown keys for which the nearest known key is looked up; each look-up takes milliseconds.
MAX_SUGGESTIONS = 20

OLD_REWARD = "custom_reward_function."


@dataclass(frozen=True)
class ImportedSetting:
    """One setting of a script.

    Attributes:
        key: the key as it is written.
        value: the value in Python.
        sign: the sign before the key: "", `+`, `++` or `~`.
        line: the line number in the script.
        is_group: whether it chooses one of Hydra's groups.
        megatron: whether the script trains with Megatron, which has some keys of its own.
    """

    key: str
    value: Any
    sign: str
    line: int
    is_group: bool = False
    megatron: bool = False

    @property
    def latest_key(self) -> str:
        """The key's name in verl 0.9.1."""
        return self.key if self.is_group else to_latest_key(self.key, megatron=self.megatron)


def is_known(override: ImportedSetting) -> bool:
    """Whether some release has a key, or a sign says that it is meant to be new."""
    if override.is_group or override.sign in {"+", "++"}:
        return True
    names = {override.key, override.latest_key}
    return not names.isdisjoint(gone_keys()) or any(
        _takes(known, name) for known in _all_releases() for name in names
    )


def _takes(known: Release, key: str) -> bool:
    """Whether a release lists a key, or takes any name there in a section that it has."""
    return known.lists(key) or (known.accepts_unlisted(key) and known.lists(key.partition(".")[0]))


def unknown_findings(unknown: Iterable[ImportedSetting]) -> Iterator[LaunchFinding]:
    """Yield a finding for each key that no release knows, with the nearest known key."""
    for i, override in enumerate(unknown):
        if engines := _engines_of(override.key):
            names = " and ".join(engines)
            text = (
                f"a setting of {names}, which rewardkit does not plan for (line {override.line})."
            )
            yield LaunchFinding("error", "engine", override.key, text, "It is not in the recipe.")
            continue
        near = _nearest(override.key) if i < MAX_SUGGESTIONS else ""
        yield LaunchFinding(
            "error",
            "L-76",
            override.key,
            f"no release of verl has such a key (line {override.line}); it is not in the recipe.{near}",
            "Correct it under verl:, or write it with + if something reads it that verl does not list.",
        )


def release_findings(settings: Iterable[ImportedSetting], release: Release) -> list[LaunchFinding]:
    """Return where a release does not do what a script says; a lost reward function is an error.

    Args:
        settings: the script's settings that some release knows.
        release: the release, as the trainer that the script starts composes it.
    """
    ignored: dict[IgnoredKey, list[ImportedSetting]] = {}
    others: list[LaunchFinding] = []
    for override in settings:
        if override.is_group or override.sign == "~":
            continue
        if entry := release.ignored(override.key):
            ignored.setdefault(entry, []).append(override)
        else:
            others += _name_findings(override, release)
    return [*(_ignored(entry, keys, release) for entry, keys in ignored.items()), *others]


def repeated_findings(settings: Iterable[ImportedSetting]) -> Iterator[LaunchFinding]:
    """Yield findings about settings that stand more than once, under one name or several."""
    by_key: dict[str, list[ImportedSetting]] = {}
    for override in settings:
        by_key.setdefault(override.latest_key, []).append(override)
    for times in by_key.values():
        if len(times) == 1:
            continue
        lines = _listed(list(dict.fromkeys(str(override.line) for override in times)))
        lines = f"line{'s' * (',' in lines)} {lines}"
        names = _listed(list(dict.fromkeys(override.key for override in times)))
        if all(override.value == times[0].value for override in times):
            yield LaunchFinding("info", "L-76", names, f"given more than once ({lines}), the same.")
        else:
            text = f"given more than once ({lines}) with different values"
            last = f"the last one counts: {times[-1].value!r}."
            yield LaunchFinding("warning", "L-76", names, f"{text}; {last}", "Delete the others.")


def _ignored(entry: IgnoredKey, keys: list[ImportedSetting], release: Release) -> LaunchFinding:
    names = ", ".join(override.key for override in keys)
    path = next((override.value for override in keys if override.key == f"{OLD_REWARD}path"), None)
    if entry.key == OLD_REWARD and isinstance(path, str):
        return LaunchFinding(
            "error",
            "reward-ignored",
            names,
            f"verl {release.verl} trains WITHOUT the reward function of this script ({path}): it "
            "takes these keys and ignores them silently, and its own scorer of each "
            "data_source decides instead.",
            "The recipe has the function where this verl reads it (reward.custom_reward_function).",
        )
    names_here = {release.name_of(override.latest_key) for override in keys}
    readable = sorted(name for name in names_here if name and not release.ignored(name))
    renamed = (
        "The recipe has it so." if "use " in entry.why else f"The recipe has {_listed(readable)}."
    )
    fix = renamed if readable else "It is left out of the command."
    rule = "does-not-start" if entry.fatal else "ignored"
    return LaunchFinding("warning", rule, names, f"verl {release.verl}: {entry.why}.", fix)


def _name_findings(override: ImportedSetting, release: Release) -> Iterator[LaunchFinding]:
    """Yield what is wrong with a key's name or sign in a release."""
    verl, key = f"verl {release.verl}", override.key
    new = release.name_of(override.latest_key)
    if release.lists(key):
        default = release.keys.get(key)
        if override.sign == "+" and default is not None and not isinstance(default, (dict, list)):
            text = f"{verl} lists the key, and refuses a + before one that it has."
            yield LaunchFinding("warning", "plus", key, text, "The recipe has it without.")
        if new and new != key and release.lists(new):
            text = f"{verl} still takes it, and reads {new}."
            yield LaunchFinding("info", "renamed", key, text, "The recipe has it so.")
        elif key == f"{ACTOR}.strategy" and release.megatron and release.number >= ENGINE_SINCE:
            text = f"{verl} has model_engine={override.value} for it."
            yield LaunchFinding("info", "renamed", key, text, "The recipe's command uses it.")
        return
    reads = bool(new) and (release.lists(new) or release.accepts_unlisted(new))
    if reads and new != key:
        does = "is read by nothing" if override.sign else "does not start with it"
        text = f"{verl} {does}: the key is {new} there."
        yield LaunchFinding("warning", "renamed", key, text, "The recipe has it so.")
    elif reads and not override.sign:
        text = f"{verl} takes it only with a + before it."
        yield LaunchFinding("warning", "plus", key, text, "The command of the recipe has one.")
    elif not reads:
        yield _unread(override, release)


def _unread(override: ImportedSetting, release: Release) -> LaunchFinding:
    """Return the finding about a key that the release does not have under any name."""
    other = release_of(release.verl, megatron=not release.megatron)
    if other.lists(override.key):
        engine = "FSDP" if release.megatron else "Megatron"
        text = f"a setting of {engine}, which this run does not use."
        return LaunchFinding(
            "warning", "engine", override.key, text, "It is left out of the command."
        )
    where = [
        r.verl for r in _all_releases() if r.lists(override.key) or r.lists(override.latest_key)
    ]
    where += [v for k in (override.key, override.latest_key) if (v := gone_keys().get(k))]
    if where:
        text = f"verl {release.verl} has no such setting (verl {where[0]} has)."
        return LaunchFinding("warning", "no-such-setting", override.key, text)
    text = f"no release of verl lists it.{_nearest(override.key)}"
    return LaunchFinding("warning", "plus", override.key, text, "Check that something reads it.")


@cache
def _all_releases() -> tuple[Release, ...]:
    """Return all releases, the newest first, each for FSDP and for Megatron."""
    return tuple(
        release_of(version, megatron=megatron, dapo_recipe=True)
        for version in [*reversed(known_releases()), *snapshots()]
        for megatron in (False, True)
    )


def _engines_of(key: str) -> tuple[str, ...]:
    """Return the engines that a key belongs to in the newest release that has it for those only."""
    return next((names for release in _all_releases() if (names := release.engines_of(key))), ())


@cache
def _all_keys() -> dict[str, None]:
    listed = (key for known in _all_releases() for key in known.keys)
    return {key: None for key in (*listed, *gone_keys()) if "_target_" not in key}


@cache
def _nearest(key: str) -> str:
    """Return a sentence with the nearest keys: keys that end in this one, or are spelt alike."""
    ends = [known for known in _all_keys() if known.endswith(f".{key}")]
    if 0 < len(ends) <= 3:
        return f" Did you mean {' or '.join(repr(known) for known in ends)}?"
    return did_you_mean(key, list(_all_keys())) if len(key) <= 120 else ""


def _listed(names: list[str]) -> str:
    """Return up to six names, and how many more there are."""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
