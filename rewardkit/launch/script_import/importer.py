"""Import of a launch script: its recipe, and how a release of verl treats the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.overrides import KEY, parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, ENGINE_SINCE, FILTER_SINCE, TRAINER, Plan
from rewardkit.launch.presets import ACTOR
from rewardkit.launch.script_import.launch_script import (
    LaunchScript,
    OpenSetting,
    ScriptProblem,
    ScriptSetting,
    parse_script,
)
from rewardkit.launch.script_import.launcher import JOB, launcher_findings
from rewardkit.launch.script_import.override_findings import (
    ImportedSetting,
    is_known,
    release_findings,
    repeated_findings,
    unknown_findings,
)
from rewardkit.launch.script_import.recipe_draft import RecipeDraft, draft_recipe
from rewardkit.launch.script_import.recipe_writer import write_yaml
from rewardkit.launch.script_import.unresolved import (
    missing_settings,
    require_decided,
    unresolved_finding,
)
from rewardkit.launch.verl.hydra_values import Raw, parse_value
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import Release, release_of
from rewardkit.redact import Redactor, is_secret_name, is_secret_value

#: Levels of brackets in a value.
MAX_NESTING = 10

#: Digits of a number: Python refuses to read very long ones.
MAX_DIGITS = 300


_INTERFACE = re.compile(r"(?:HCCL|NCCL|GLOO|TP)_SOCKET_IFNAME|HCCL_IF_IP")


@dataclass(frozen=True)
class ImportedScript:
    """A launch script as a recipe.

    Attributes:
        recipe: the mapping that `recipe.read_recipe` takes.
        findings: about the script and the release it was read for, the worst first.
        unresolved: settings that only a run of the script can tell; they are `???` in the recipe.
        left_out: settings that no release knows or that a recipe cannot have.
        where: the script's file.
        verl: the release.
    """

    recipe: Mapping[str, Any]
    findings: list[LaunchFinding]
    unresolved: list[OpenSetting]
    left_out: list[ScriptSetting]
    where: str
    verl: str


def import_script(
    text: str,
    where: str,
    verl: str,
    *,
    env: Mapping[str, str] | None = None,
    arguments: Iterable[str] = (),
) -> ImportedScript:
    """Return a launch script, or a list of `key=value`, as a recipe. Nothing is run.

    Args:
        text: the script, up to 1 MB.
        where: its file, for messages and the recipe's name.
        verl: the release that the recipe and the findings are for.
        env: variables that the script is started with.
        arguments: the arguments that the script is started with.

    Raises:
        DataError: it is binary, too long or too complex, does not start a run of verl, or what it
            runs depends on a test or a value that only a run can tell.
        UsageError: the release is unknown.
    """
    try:
        script = parse_script(text, where, env, arguments)
    except DataError as error:
        raise DataError(Redactor().learn([text, *(env or {}).values()]).text(str(error))) from None
    redactor = _redactor(script, text)
    findings = [*launcher_findings(script.launcher, script.env)]
    overrides, release = _read_overrides(script, verl, findings, redactor)
    known = [override for override in overrides if override and is_known(override)]
    require_decided(script, release, known, where)
    mistyped = [o for o in known if release.refuses(release.name_of(o.latest_key), o.value)]
    unknown = [override for override in overrides if override and not is_known(override)]
    known = [override for override in known if override not in mistyped]
    env = dict(_env(script.env, findings, redactor))
    draft = _draft([*known, *missing_settings(script, known, release)], script, release, where)
    tree, differences, plan = draft_recipe(draft, env)
    findings = [
        *release_findings(known, release),
        *unknown_findings(unknown),
        *(_mistyped(override, release) for override in mistyped),
        *map(_problem, script.problems),
        *findings,
        *_module_findings(script, release, plan),
        *repeated_findings(known),
        *map(unresolved_finding, script.unresolved),
        *differences,
    ]
    if plan:
        findings += _placed_elsewhere(known, plan, findings)
    is_left_out = [override is None or override in (*unknown, *mistyped) for override in overrides]
    return ImportedScript(
        recipe=redactor.tree(tree),
        findings=[_without_secrets(finding, redactor) for finding in sort_by_severity(findings)],
        unresolved=[_open_without_secrets(setting, redactor) for setting in script.unresolved],
        left_out=[
            ScriptSetting(redactor.text(setting), line)
            for setting, line in compress(script.overrides, is_left_out)
        ],
        where=where,
        verl=release.verl,
    )


def _read_overrides(
    script: LaunchScript, verl: str, findings: list[LaunchFinding], redactor: Redactor
) -> tuple[list[ImportedSetting | None], Release]:
    """Return the settings of a script, None for one that a recipe cannot have, and the release."""
    overrides = [_override(setting, findings, redactor) for setting in script.overrides]
    release = _release(script, [o for o in overrides if o and is_known(o)], verl)
    return [o and replace(o, megatron=release.megatron) for o in overrides], release


def recipe_text(imported: ImportedScript) -> str:
    """Return the recipe as YAML; comments on top have the findings and the settings left out."""
    header = [f"Imported from {imported.where}, for verl {imported.verl}; the script was not run."]
    if imported.findings:
        header += ["", "Findings:"]
        header += [f"  {finding.severity}: {finding}" for finding in imported.findings]
    if imported.left_out:
        header += ["", "Left out:"]
        header += [f"  line {line}: {text[:200]}" for text, line in imported.left_out]
    return write_yaml(imported.recipe, header)


def _redactor(script: LaunchScript, text: str) -> Redactor:
    """Return a redactor that knows the secrets of a script and of its variables."""
    settings = [setting.text for setting in script.overrides]
    return Redactor().learn([script.variables, text, *settings])


def _without_secrets(finding: LaunchFinding, redactor: Redactor) -> LaunchFinding:
    text, key = redactor.text(finding.text), redactor.text(finding.key)
    return replace(finding, key=key, text=text, fix=redactor.text(finding.fix))


def _open_without_secrets(setting: OpenSetting, redactor: Redactor) -> OpenSetting:
    unknowns = tuple(u._replace(text=redactor.text(u.text)) for u in setting.unknowns)
    return setting._replace(text=redactor.text(setting.text), unknowns=unknowns)


def _release(script: LaunchScript, known: list[ImportedSetting], verl: str) -> Release:
    """Return a release as the trainer that a script starts composes it."""
    needs_recipe = script.module == DAPO_RECIPE and release_of(verl).number < FILTER_SINCE
    return release_of(verl, megatron=_is_megatron(script, known), dapo_recipe=needs_recipe)


def _override(
    setting: ScriptSetting, findings: list[LaunchFinding], redactor: Redactor
) -> ImportedSetting | None:
    """Return an override with its value; None, with a finding, where a recipe cannot have it."""
    key, _, value = setting.text.partition("=")
    bare = key.lstrip("+~").strip()
    if is_secret_value(bare, value.strip()) or redactor.text(setting.text) != setting.text:
        findings.append(_secret(bare[:200], f"(line {setting.line})"))
        return None
    reason = _refusal(bare, value)
    if reason is None:
        try:
            (override,) = parse_overrides([setting.text], f"line {setting.line}")
        except UsageError as error:
            reason = str(error)
        else:
            plain = _plain(override.value)
            if plain is not _NOT_PLAIN:
                return ImportedSetting(
                    override.key, plain, override.sign, setting.line, override.is_group
                )
            reason = "a value of Hydra's own grammar, which a recipe cannot have."
    text = f"{reason.rstrip('.')} (line {setting.line})."
    findings.append(
        LaunchFinding("error", "L-76", bare[:200] or setting.text[:80], text, "It is left out.")
    )
    return None


def _refusal(key: str, value: str) -> str | None:
    """Return why a text is not parsed as an override; None if it is."""
    if len(key) > 300 or not KEY.fullmatch(key):
        return "not a key of a configuration"
    if "." not in key and "@" not in key and "/" not in key and key != "model_engine":
        return "chooses one of Hydra's groups, or sets a whole section"
    depth = deepest = 0
    for char in value:
        depth += (char in "[{(") - (char in "]})")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        return f"brackets more than {MAX_NESTING} deep"
    return "a number too long to read" if re.search(rf"\d{{{MAX_DIGITS}}}", value) else None


#: Stands for a value of Hydra's own grammar.
_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    """Return a value without `Raw` parts: `{a:1}` is a mapping, `choice(1,2)` is not plain."""
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
    """Whether a script trains with Megatron: it names it, or sets what only Megatron has."""
    values = {override.latest_key: override.value for override in known}
    names = (script.config_name, values.get("model_engine"), values.get(f"{ACTOR}.strategy"))
    return any("megatron" in str(name) for name in names) or any(
        key.startswith(f"{ACTOR}.megatron.") for key in values
    )


def _draft(
    known: list[ImportedSetting], script: LaunchScript, release: Release, where: str
) -> RecipeDraft:
    """Return the settings by verl 0.9.1's names, each once: the last one counts."""
    settings: dict[str, Any] = {}
    signs: dict[str, str] = {}
    for override in known:
        key = override.latest_key
        name = release.name_of(key)
        is_read = bool(name) and (release.lists(name) or release.accepts_unlisted(name))
        signs[key] = override.sign if override.sign == "~" or not is_read else ""
        settings[key] = override.value
    return RecipeDraft(settings=settings, signs=signs, script=script, release=release, where=where)


def _secret(name: str, place: str = "") -> LaunchFinding:
    # The bracket keeps "NAME: looks" from being taken for a variable and its value, and hidden.
    text = f"{place or '(a variable)'} looks like a secret; it is not in the recipe, which others read."
    fix = "Export it where the run starts, or pass it to rewardkit train after `--`."
    return LaunchFinding("info", "secret", name, text, fix)


def _env(
    env: Mapping[str, str], findings: list[LaunchFinding], redactor: Redactor
) -> Iterator[tuple[str, str]]:
    """Yield the variables that belong in a recipe."""
    is_job = any(finding.key == JOB for finding in findings)
    for name, value in env.items():
        if is_secret_name(name) or redactor.text(value) != value:
            findings.append(_secret(name))
        elif name == "RAY_ADDRESS" and is_job:
            continue  # of the job's submission, not of the job
        elif _INTERFACE.fullmatch(name):
            text = f"differs between nodes, so each node detects its own; the script has {value!r}."
            fix = "Set cluster.interface if all nodes have the same."
            findings.append(LaunchFinding("info", "interface", name, text, fix))
        else:
            yield name, value


def _problem(problem: ScriptProblem) -> LaunchFinding:
    numbers = ", ".join(map(str, problem.lines[:8]))
    more = f" and {len(problem.lines) - 8} more" if len(problem.lines) > 8 else ""
    place = f"line{'s' if len(problem.lines) > 1 else ''} {numbers}{more}"
    return LaunchFinding("error" if problem.breaks else "info", "L-76", place, problem.text)


def _module_findings(
    script: LaunchScript, release: Release, plan: Plan | None
) -> Iterator[LaunchFinding]:
    """Yield findings about verl's module and about Hydra's options."""
    if script.module == DAPO_RECIPE and not (plan and plan.module == DAPO_RECIPE):
        text = f"not part of verl {release.verl}, whose own trainer samples dynamically."
        if release.number < FILTER_SINCE:
            text = "a run without dynamic sampling needs nothing that it adds."
        yield LaunchFinding(
            "warning", "module", script.module, text, f"The recipe starts {TRAINER}."
        )
    elif script.module not in {"", TRAINER, DAPO_RECIPE}:
        text = (
            f"a trainer of its own: the recipe starts {TRAINER}, which does not have what it adds."
        )
        fix = "Start the script as it is to train with it."
        yield LaunchFinding("error", "module", script.module, text, fix)
    name = script.config_name
    if name == "ppo_megatron_trainer" and release.number >= ENGINE_SINCE:
        text = f"verl {release.verl} has model_engine=megatron for it."
        yield LaunchFinding(
            "info", "renamed", f"--config-name={name}", text, "The recipe's command uses it."
        )
    elif name not in {"", "ppo_trainer", "ppo_megatron_trainer", "dapo_trainer"}:
        text = "this configuration is not verl's: the script does not have its settings."
        fix = "Add its settings under verl:."
        yield LaunchFinding("warning", "config-name", f"--config-name={name}", text, fix)


def _placed_elsewhere(
    known: list[ImportedSetting], plan: Plan, findings: list[LaunchFinding]
) -> Iterator[LaunchFinding]:
    """Yield a finding for each setting that the command does not have under its name."""
    names = {argument.lstrip("+~").partition("=")[0] for argument in plan.arguments}
    in_findings = {key for finding in findings for key in finding.key.split(", ")}
    notes = {to_latest_key(note.key): note.text for note in plan.notes}
    verl = f"verl {plan.verl}"
    for override in known:
        key = override.key
        if (
            key in names | in_findings
            or override.latest_key in plan.missing
            or override.sign == "~"
        ):
            continue
        new = plan.release.name_of(override.latest_key)
        rule = "renamed" if key == "model_engine" or new in names else "default"
        if key == "model_engine":
            text = f"{verl} has --config-name=ppo_megatron_trainer.yaml for it."
        elif new in names:
            text = f"{verl} reads {new}. The recipe has it so."
        elif new and plan.release.keys.get(new) == override.value:
            text = f"{verl} has this value by itself; the command leaves it out."
        else:
            text = notes.get(override.latest_key, "the recipe's own fields have its effect.")
        yield LaunchFinding("info", rule, key, text)


def _mistyped(override: ImportedSetting, release: Release) -> LaunchFinding:
    text = (
        f"{override.value!r} is text where verl {release.verl} has a number (line {override.line})."
    )
    return LaunchFinding(
        "error", "L-76", override.key, text, "It is left out: put the value in the recipe."
    )
