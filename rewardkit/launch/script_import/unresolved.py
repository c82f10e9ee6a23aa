"""Settings of a script that only a run can tell, and settings that leave no recipe."""

from __future__ import annotations

from dataclasses import replace

from rewardkit.errors import DataError
from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.overrides import KEY
from rewardkit.launch.plan import MISSING
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.script_import.launch_script import LaunchScript, OpenSetting
from rewardkit.launch.script_import.override_findings import ImportedSetting, is_known
from rewardkit.launch.script_import.recipe_draft import COUNTS
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import Release

#: Settings that decide fields of the recipe: one that only a run can tell leaves no recipe.
DECIDING = frozenset(
    {
        "algorithm.adv_estimator",
        "algorithm.filter_groups.enable",
        "model_engine",
        "reward.reward_manager.name",
        "trainer.device",
        f"{ACTOR}.strategy",
        *COUNTS,
    }
)

#: What recipes train with; `strategy` says which.
STRATEGIES = ("fsdp", "fsdp2", "megatron")

#: The recipe has a name of its own where the script's is not known.
NAME = "trainer.experiment_name"


def missing_settings(
    script: LaunchScript, known: list[ImportedSetting], release: Release
) -> list[ImportedSetting]:
    """Return the settings that stand in the recipe as `???`."""
    settings = map(_missing_setting, script.unresolved)
    return [
        replace(setting, megatron=release.megatron)
        for setting in settings
        if _may_be_missing(setting, known)
    ]


def unresolved_finding(setting: OpenSetting) -> LaunchFinding:
    """Return the finding about a setting that only a run can tell."""
    key = setting.key.lstrip("+~")
    unknown = setting.unknowns[0]
    what = f"{setting.text[:80]} (line {setting.line}) is known only when the script runs"
    given = f"import with --env {unknown.names[0]}=VALUE" if unknown.names else ""
    if to_latest_key(key) == NAME:
        text = f"{what}: the recipe has a name of its own."
        return LaunchFinding("info", "unresolved", key, text, f"Or {given}." if given else "")
    ways = " or ".join(["Put the value in the recipe", *([given] if given else [])])
    return LaunchFinding(
        "warning", "unresolved", key, f"{what}: it is ??? in the recipe.", f"{ways}."
    )


def _may_be_missing(missing: ImportedSetting, known: list[ImportedSetting]) -> bool:
    """Whether a setting that is not known stands in the recipe as `???`."""
    is_set_later = any(
        other.latest_key == missing.latest_key and other.line > missing.line for other in known
    )
    is_key = KEY.fullmatch(missing.key) is not None and len(missing.key) <= 300
    return is_key and is_known(missing) and missing.latest_key != NAME and not is_set_later


def _missing_setting(setting: OpenSetting) -> ImportedSetting:
    key = setting.key.lstrip("+~").strip()
    sign = setting.key[: len(setting.key) - len(setting.key.lstrip("+~"))]
    is_group = "@" in key or "/" in key or key == "model_engine"
    return ImportedSetting(key, MISSING, sign, setting.line, is_group)


def require_decided(
    script: LaunchScript, release: Release, known: list[ImportedSetting], where: str
) -> None:
    """Refuse a script with an engine that recipes do not have, or whose basic settings are unknown.

    Raises:
        DataError: a recipe of it would train something else.
    """
    for setting in script.unresolved:
        key = setting.key.lstrip("+~")
        if to_latest_key(key) in DECIDING:
            name = next((name for u in setting.unknowns for name in u.names), "")
            way = f"Pass --env {name}=VALUE." if name else "Write its value into the script."
            raise DataError(
                f"{where}: {key} (line {setting.line}) is {setting.text[:80]}, which only a run can "
                f"tell, and the recipe depends on it. {way}"
            )
    for override in known:
        value = str(override.value)
        is_engine = override.key == "model_engine" or override.latest_key == f"{ACTOR}.strategy"
        if not is_engine or value in STRATEGIES or value == "dp":
            continue
        engine = f"an engine of verl {release.verl}" if value in release.engines else "an engine"
        raise DataError(
            f"{where}: trains with {value} (line {override.line}), {engine} that rewardkit does not plan "
            f"for yet: recipes train with {', '.join(STRATEGIES)}. Start this script as it is."
        )
