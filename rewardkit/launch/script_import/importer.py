"""Somebody's launch script as a recipe, and what a release of verl makes of the script itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.overrides import KEY, parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, ENGINE_SINCE, FILTER_SINCE, TRAINER
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.script_import.findings import (
    ImportedSetting,
    is_known,
    release_findings,
    repeated_findings,
    unknown_findings,
)
from rewardkit.launch.script_import.launch_script import LaunchScript, ScriptSetting, parse_script
from rewardkit.launch.script_import.recipe import FILES, REWARD, Draft, drafted
from rewardkit.launch.script_import.recipe_writer import write_yaml
from rewardkit.launch.script_import.shell_tree import ScriptProblem
from rewardkit.launch.verl.hydra_values import Raw, parse_value
from rewardkit.launch.verl.key_renames import to_latest_key, to_release_key
from rewardkit.launch.verl.releases import Release, release_of
from rewardkit.redact import Redactor, is_secret_name, is_secret_value

#: Brackets in brackets that a value may have.
MAX_NESTING = 10

#: Digits that a number may have: Python refuses to read very long ones.
MAX_DIGITS = 300

#: Settings in which `~` is expanded by rewardkit.
HOME_KEYS = frozenset({*FILES, f"{REWARD}.path"})

_INTERFACE = re.compile(r"(?:HCCL|NCCL|GLOO|TP)_SOCKET_IFNAME|HCCL_IF_IP")


@dataclass(frozen=True)
class Imported:
    """A launch script as a recipe.

    Attributes:
        recipe: the mapping that `recipe.read_recipe` takes.
        findings: about the script and the release it was read for, the worst first.
        unresolved: what is known only when the script runs; it stands in the recipe as written.
        left_out: settings that no release knows or that cannot be kept, by their lines.
        where: the script.
        verl: the release.
    """

    recipe: Mapping[str, Any]
    findings: list[LaunchFinding]
    unresolved: list[str]
    left_out: list[ScriptSetting]
    where: str
    verl: str


def import_script(text: str, where: str, verl: str) -> Imported:
    """Read a launch script, or a list of `key=value`, as a recipe. Nothing is run.

    Args:
        text: of the script, up to 1 MB.
        where: its file, for messages and the recipe's name.
        verl: the release the recipe is for; the findings are about it.

    Raises:
        DataError: it is not text, is too long, or does not start verl.
        UsageError: there is no such release.
    """
    script = parse_script(text, where)
    redactor = _redactor(script, text)
    reading: list[LaunchFinding] = []
    settings = [_setting(setting, reading, redactor) for setting in script.overrides]
    known = [setting for setting in settings if setting and is_known(setting)]
    unknown = [setting for setting in settings if setting and not is_known(setting)]
    megatron = _is_megatron(script, known)
    before = release_of(verl).number < FILTER_SINCE
    kind = {"megatron": megatron, "dapo_recipe": script.module == DAPO_RECIPE and before}
    target = release_of(verl, **kind)
    mistyped = _mistyped_settings(known, target, kind)
    known = [setting for setting in known if setting not in mistyped]
    env = dict(_env(script.env, reading, redactor))
    tree, differences = drafted(_draft(known, script, target, kind, where), env)
    out = [setting is None or setting in (*unknown, *mistyped) for setting in settings]
    findings = [
        *release_findings(known, target, kind),
        *unknown_findings(unknown),
        *(_mistyped(setting, target) for setting in mistyped),
        *(_problem(problem) for problem in script.problems),
        *reading,
        *_launch(script, target, kind),
        *repeated_findings(known),
        *(_unresolved(raw, script) for raw in script.unresolved),
        *differences,
    ]
    return Imported(
        recipe=redactor.tree(tree),
        findings=[_without_secrets(finding, redactor) for finding in sort_by_severity(findings)],
        unresolved=redactor.tree(script.unresolved),
        left_out=[
            ScriptSetting(redactor.text(text), line)
            for text, line in compress(script.overrides, out)
        ],
        where=where,
        verl=target.verl,
    )


def _mistyped_settings(
    known: list[ImportedSetting], target: Release, kind: Mapping[str, bool]
) -> list[ImportedSetting]:
    """The settings with a value of a type that the release refuses."""
    return [
        setting
        for setting in known
        if target.refuses(to_release_key(setting.canonical, target.number, **kind), setting.value)
    ]


def recipe_text(imported: Imported) -> str:
    """The recipe as a file, with the findings and what was left out as comments on top."""
    header = [f"Imported from {imported.where}, for verl {imported.verl}; the script was not run."]
    if imported.findings:
        header += ["", "Found:"]
        header += [f"  {finding.severity}: {finding}" for finding in imported.findings]
    if imported.left_out:
        header += ["", "Left out:"]
        header += [f"  line {line}: {text[:200]}" for text, line in imported.left_out]
    return write_yaml(imported.recipe, header)


def _redactor(script: LaunchScript, text: str) -> Redactor:
    """What knows the secrets of a script, those in variables that others are made of too."""
    settings = [setting.text for setting in script.overrides]
    return Redactor().learn([script.variables, text, *settings])


def _without_secrets(finding: LaunchFinding, redactor: Redactor) -> LaunchFinding:
    text, key = redactor.text(finding.text), redactor.text(finding.key)
    return replace(finding, key=key, text=text, fix=redactor.text(finding.fix))


def _setting(
    setting: ScriptSetting, found: list[LaunchFinding], redactor: Redactor
) -> ImportedSetting | None:
    """An override as a value; None, with a finding, where a recipe cannot have it."""
    key, _, value = setting.text.partition("=")
    bare = key.lstrip("+~").strip()
    if is_secret_value(bare, value.strip()) or redactor.text(setting.text) != setting.text:
        found.append(_secret(bare[:200], f"(line {setting.line})"))
        return None
    reason = _refused(bare, value)
    if reason is None:
        try:
            (override,) = parse_overrides([setting.text], f"line {setting.line}")
        except UsageError as error:
            reason = str(error)
        else:
            given = _plain(override.value)
            if given is not _NOT_PLAIN:
                return ImportedSetting(
                    override.key, given, override.sign, setting.line, group=override.is_group
                )
            reason = "a value of Hydra's own grammar, which a recipe cannot have."
    text = f"{reason.rstrip('.')} (line {setting.line})."
    found.append(
        LaunchFinding("error", "L-76", bare[:200] or setting.text[:80], text, "It is left out.")
    )
    return None


def _refused(key: str, value: str) -> str | None:
    """Why a text is not looked at as an override; None if it is."""
    if len(key) > 300 or not KEY.fullmatch(key):
        return "no key of a configuration"
    if "." not in key and "@" not in key and "/" not in key and key != "model_engine":
        return "chooses one of Hydra's groups, or sets a whole section"
    depth = deepest = 0
    for char in value:
        depth += (char in "[{(") - (char in "]})")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        return f"brackets more than {MAX_NESTING} deep"
    return "a number too long to read" if re.search(rf"\d{{{MAX_DIGITS}}}", value) else None


#: What a value of Hydra's own grammar becomes.
_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """A value without `Raw` parts: `{a:1,b:x}` becomes a mapping, `choice(1,2)` is none."""
    if isinstance(value, Raw):
        return _mapping(str(value))
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return _NOT_PLAIN if any(item is _NOT_PLAIN for item in items) else items
    return value


def _mapping(text: str) -> Any:
    inner = re.fullmatch(r"\{([^{}\[\]'\"()]*)\}", text)
    if inner is None:
        return _NOT_PLAIN
    pairs = [pair.partition(":") for pair in inner[1].split(",") if pair.strip()]
    if not all(colon and name.strip() for name, colon, _ in pairs):
        return _NOT_PLAIN
    return {name.strip(): parse_value(value.strip()) for name, _, value in pairs}


def _is_megatron(script: LaunchScript, known: list[ImportedSetting]) -> bool:
    """Whether a script trains with Megatron: it says so, or sets what only Megatron has."""
    values = {setting.canonical: setting.value for setting in known}
    said = (script.config_name, values.get("model_engine"), values.get(f"{ACTOR}.strategy"))
    return any("megatron" in str(word) for word in said) or any(
        key.startswith(f"{ACTOR}.megatron.") for key in values
    )


def _draft(
    known: list[ImportedSetting],
    script: LaunchScript,
    target: Release,
    kind: Mapping[str, bool],
    where: str,
) -> Draft:
    """The settings by verl 0.9.1's names, each once: the last one counts."""
    settings: dict[str, Any] = {}
    signs: dict[str, str] = {}
    for setting in known:
        key, name = setting.canonical, to_release_key(setting.canonical, target.number, **kind)
        reads = bool(name) and (target.lists(name) or target.open_at(name))
        signs[key] = setting.sign if setting.sign == "~" or not reads else ""
        settings[key] = _at_home(key, setting.value)
    return Draft(settings, signs, script, target, kind, where)


def _at_home(key: str, value: Any) -> Any:
    """`$HOME/x` as `~/x`, in files that rewardkit itself looks up."""
    if key not in HOME_KEYS:
        return value
    if isinstance(value, list):
        return [_at_home(key, item) for item in value]
    return re.sub(r"^\$(?:HOME|\{HOME\})(?=/)", "~", value) if isinstance(value, str) else value


def _secret(name: str, place: str = "") -> LaunchFinding:
    # The bracket keeps "NAME: looks" from being taken for a variable and its value, and hidden.
    text = f"{place or '(a variable)'} looks like a secret, and is not in the recipe, which others read."
    fix = "Export it where the run starts, or give it to rewardkit train after `--`."
    return LaunchFinding("info", "secret", name, text, fix)


def _env(
    env: Mapping[str, str], found: list[LaunchFinding], redactor: Redactor
) -> Iterator[tuple[str, str]]:
    """The variables that belong in a recipe."""
    for name, value in env.items():
        if is_secret_name(name) or redactor.text(value) != value:
            found.append(_secret(name))
        elif _INTERFACE.fullmatch(name):
            text = f"may differ from node to node, and is found on each; the script has {value!r}."
            found.append(
                LaunchFinding("info", "interface", name, text, "Or set cluster.interface.")
            )
        else:
            yield name, value


def _problem(problem: ScriptProblem) -> LaunchFinding:
    shown = ", ".join(map(str, problem.lines[:8]))
    more = f" and {len(problem.lines) - 8} more" if len(problem.lines) > 8 else ""
    place = f"line{'s' if len(problem.lines) > 1 else ''} {shown}{more}"
    return LaunchFinding("error" if problem.breaks else "info", "L-76", place, problem.text)


def _launch(
    script: LaunchScript, target: Release, kind: Mapping[str, bool]
) -> Iterator[LaunchFinding]:
    """What the release makes of the module and of Hydra's options."""
    if script.module == DAPO_RECIPE and not kind["dapo_recipe"]:
        text = f"not part of verl {target.verl}, whose own trainer samples dynamically."
        yield LaunchFinding(
            "warning", "module", script.module, text, f"The recipe starts {TRAINER}."
        )
    elif script.module not in {"", TRAINER, DAPO_RECIPE}:
        text = f"a trainer that recipes do not start; this one starts {TRAINER}."
        yield LaunchFinding("warning", "module", script.module, text)
    name = script.config_name
    if name == "ppo_megatron_trainer" and target.number >= ENGINE_SINCE:
        text = f"verl {target.verl} has model_engine=megatron for it."
        yield LaunchFinding(
            "info", "renamed", f"--config-name={name}", text, "The recipe's command too."
        )
    elif name not in {"", "ppo_trainer", "ppo_megatron_trainer", "dapo_trainer"}:
        text = "a configuration that is not verl's: what it sets is not in the script."
        fix = "Put what it sets under verl:."
        yield LaunchFinding("warning", "config-name", f"--config-name={name}", text, fix)


def _mistyped(setting: ImportedSetting, target: Release) -> LaunchFinding:
    text = f"{setting.value!r} is text where verl {target.verl} has a number (line {setting.line})."
    return LaunchFinding(
        "error", "L-76", setting.key, text, "It is left out: put the value in the recipe."
    )


def _unresolved(raw: str, script: LaunchScript) -> LaunchFinding:
    """A finding for what is known only when the script runs."""
    keys = [s.text.partition("=")[0].lstrip("+") for s in script.overrides if raw in s.text]
    text = f"known only when the script runs; in {', '.join(keys[:4])}"
    if raw in {"$HOME", "${HOME}"} and {*map(to_latest_key, keys)} <= HOME_KEYS:
        return LaunchFinding(
            "info", "unresolved", raw, f"{text}. The recipe has ~ in names of files."
        )
    return LaunchFinding(
        "warning", "unresolved", raw[:80], f"{text}.", "Put the value in the recipe."
    )
