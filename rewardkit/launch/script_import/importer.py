"""Import of a launch script: its recipe, and how a release of verl treats the script."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from rewardkit.errors import DataError, RewardkitError, UsageError, unreadable_file
from rewardkit.finding import Finding, Severity, sort_by_severity
from rewardkit.launch.overrides import Override, parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, FILTER_SINCE, MISSING, TRAINER, Plan, make_plan
from rewardkit.launch.presets import ACTOR, OVERLONG
from rewardkit.launch.recipe import read_recipe
from rewardkit.launch.script_import.script_runs import (
    MARK,
    OTHER_NAME,
    SOURCE,
    START,
    TRAINER_NAME,
    ScriptRun,
    ScriptRuns,
    Start,
    display,
    env_options,
)
from rewardkit.launch.verl.hydra_values import Raw, parse_value
from rewardkit.launch.verl.releases import (
    DAPO_RECIPE_KEYS,
    NEW_KEY,
    IgnoredKey,
    release_of,
    to_latest_key,
)
from rewardkit.launch.verl.translate import Note, resolve, translate
from rewardkit.redact import Redactor, is_secret_name, is_secret_value
from rewardkit.strict_yaml import dump

#: Characters of a script, and settings of its command.
MAX_SCRIPT, MAX_SETTINGS = 200_000, 500

#: Settings that decide fields of the recipe: one that only a run can tell leaves no recipe.
_ENGINE = ("model_engine", f"{ACTOR}.strategy")
_DECIDING = re.compile(
    r"algorithm\.(?:adv_estimator|filter_groups\.enable)|reward\.reward_manager\.name"
    rf"|trainer\.(?:device|nnodes|n_gpus_per_node)|{'|'.join(_ENGINE)}"
)
_STRATEGIES = ("fsdp", "fsdp2", "megatron")
_MEGATRON = re.compile(
    rf"(?:^|\0)(?:\+*{ACTOR}\.megatron\.|(?:--config-name[=\0]|{'=|'.join(_ENGINE)}=)['\"]?\w*megatron)"
)

#: Blanks and quotes of web pages, which are none for bash.
_PASTED = str.maketrans("\u00a0\u3000“”‘’", "  \"\"''")

#: The interpreter, words before it that change nothing, and what a recipe has in place of others.
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*|-m")
_PLAIN = re.compile(r"\w+=.*|command|env|nohup|time")
_LAUNCHERS = {
    "uv": "Create its environment with `uv sync` and the same extras, and run rewardkit train in it.",
    "ray": "Set cluster.target: ray-job and cluster.address, put the env_vars of its runtime environment "
    "under env:, install its packages on the nodes, and name files by absolute paths: the job gets no "
    "copy of --working-dir.",
}

#: Exports that are settings of the run even if the script uses them; of the shell; of one node.
_SETTING = re.compile(
    r"(?:ASCEND|CUDA|GLOO|HCCL|HF|HYDRA|MODELSCOPE|NCCL|OMP|PYTORCH|RAY|SWANLAB|TORCH|VLLM|WANDB)_"
    r"\w+|TASK_QUEUE_ENABLE|TOKENIZERS_PARALLELISM|PYTHONUNBUFFERED"
)
_SHELL = re.compile(r"DEVICE|HOME|LC_ALL|OLDPWD|PATH|PWD|SHELL|SHLVL|.*[^A-Z0-9_].*")
_INTERFACE = re.compile(r"(?:HCCL|NCCL|GLOO|TP)_SOCKET_IFNAME|HCCL_IF_IP")


NAME = "trainer.experiment_name"
_INPUTS = ("actor_rollout_ref.model.path", "data.train_files", "data.val_files")
_REWARD = (f"{NEW_KEY}.path", f"{NEW_KEY}.name")

#: Settings that a plan takes as fields of the recipe.
_FIELDS = frozenset({*_INPUTS, *_REWARD, "trainer.nnodes", "trainer.n_gpus_per_node"})

#: Settings for which a recipe has its own default instead of verl's, by the end of the key, and why.
_OWN_DEFAULTS = {
    NAME: "the recipe takes its name",
    "critic.model.path": "the recipe's critic starts from the model that is trained",
    "trainer.device": "it follows the recipe's devices",
    "use_torch_compile": "on NPU the recipe turns it off",
}


class Setting(NamedTuple):
    """A setting as the script has it, by verl 0.9.1's name, and in the command of the release."""

    original: Override
    latest: Override
    overrides: Sequence[Override]
    notes: Sequence[Note]


@dataclass(frozen=True)
class ImportedScript:
    """A launch script as a recipe: the mapping that `read_recipe` takes, and findings, the worst first."""

    recipe: Mapping[str, Any]
    findings: list[Finding]
    where: str
    verl: str


def read_script(path: str | Path) -> str:
    """Return the text of a script's file."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(4 * MAX_SCRIPT).decode("utf-8-sig")
    except OSError as error:
        raise unreadable_file(path, error) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text.") from None


def import_script(
    text: str,
    where: str,
    verl: str,
    *,
    env: Mapping[str, str] | None = None,
    arguments: Iterable[str] = (),
) -> ImportedScript:
    """Return a launch script, or a list of `key=value`, as a recipe for a release. Nothing is run.

    The file `where` is for messages and the recipe's name; its folder is known if it exists. The script is
    started with the variables `env` and with the arguments.
    """
    redactor = Redactor().learn([text, dict(env or {}), *(env or {}).values()])
    try:
        return _Import(text, where, verl, redactor).read(env or {}, list(arguments))
    except DataError as error:
        raise DataError(redactor.text(f"{where}: {error}")) from None


def recipe_text(imported: ImportedScript) -> str:
    """Return the recipe as YAML; comments on top have the findings."""
    lines = [f"Imported from {imported.where}, for verl {imported.verl}; the script was not run."]
    lines += [f"{finding.severity}: {finding}" for finding in imported.findings]
    wrapper = textwrap.TextWrapper(100, subsequent_indent="#   ", break_on_hyphens=False)
    comments = []
    for line in lines:
        comments += wrapper.wrap("# " + "".join(c if c.isprintable() else " " for c in line))
    return "\n".join([*comments, "", dump(imported.recipe)])


class _Import:
    """One import: the findings come together while the script becomes a recipe."""

    def __init__(self, text: str, where: str, verl: str, redactor: Redactor) -> None:
        if len(text) > MAX_SCRIPT:
            raise DataError(f"longer than {MAX_SCRIPT:,} characters, the limit for launch scripts.")
        if re.search("[\0-\x04\U000f0000-\U0010ffff]", text):
            raise DataError("not text: it has NUL bytes or other control characters.")
        self.text = text.translate(_PASTED).replace("\r\n", "\n").replace("\r", "\n")
        self.where, self.redactor, self.release = where, redactor, release_of(verl)
        self.config_name, self.findings = "", list[Finding]()
        if text != self.text:
            problem = "has Windows line ends, or quotes or blanks of a web page: bash fails on it."
            self.add("error", "L-76", where, problem)

    def add(self, severity: Severity, rule: str, key: str, text: str, fix: str = "") -> None:
        key, text, fix = (self.redactor.text(each) for each in (key[:300], text[:2000], fix))
        finding = Finding(severity, rule, key, text, fix)
        self.findings += [finding] if finding not in self.findings else []

    def note(self, line: int, text: str, severity: Severity = "info") -> None:
        self.add(severity, "L-76", f"line {line}", text)

    def read(self, env: Mapping[str, str], arguments: list[str]) -> ImportedScript:
        runs = ScriptRuns(self.text, self.where, env, arguments)
        try:
            run = runs.explore()
        finally:
            runs.close()
        for line, text in run.notes:
            self.note(line, text)
        start = self.trainer(run)
        self.redactor.learn(start.variables)
        self.release = release_of(
            self.release.verl,
            megatron=bool(_MEGATRON.search("\0".join(start.arguments))),
            dapo_recipe=start.module == DAPO_RECIPE and self.release.number < FILTER_SINCE,
        )
        settings = list(self.settings(start, runs))
        self.find_ignored(settings)
        self.find_repeated(settings)
        self.find_trainer(start)
        variables = dict(self.variables(start))
        tree = self.draft(settings, start, variables)
        findings = sort_by_severity(self.findings)
        return ImportedScript(self.redactor.tree(tree), findings, self.where, self.release.verl)

    def trainer(self, run: ScriptRun) -> Start:
        """Return the command that starts a run of reinforcement learning, with settings below it."""
        ours = [start for start in run.starts if _is_ours(start)]
        for other in run.starts:
            text = f"starts {other.module}, which is not reinforcement learning"
            if not ours:
                where = f"(line {other.line}): a recipe describes a run of {TRAINER}."
                raise DataError(f"{text} {where}")
            if other not in ours:
                self.note(other.line, f"{text}: it is not part of the recipe.")
        if not ours:
            raise DataError(_no_run(run))
        modules = [start for start in ours if start.module]
        if any(start[2:4] != modules[0][2:4] for start in modules):
            lines = ", ".join(dict.fromkeys(str(start.line) for start in modules))
            raise DataError(
                f"starts {len(modules)} runs with different settings (line {lines}): a recipe "
                "describes one. Import each as a file of its own."
            )
        first = (modules or ours)[0]
        rest = [start for start in ours if not start.module and start is not first]
        for start in rest if modules else []:
            text = "settings below the end of the command: bash does not pass them."
            self.note(start.line, text, "error")
        words = [word for start in (first, *rest) for word in start.arguments]
        engine = "" if modules else first.variables.get("model_engine")  # as bash reads a list
        return first._replace(arguments=[f"model_engine={engine}", *words] if engine else words)

    def settings(self, start: Start, runs: ScriptRuns) -> Iterator[Setting]:
        """Yield the settings that a recipe can have."""
        if len(start.arguments) > MAX_SETTINGS:
            raise DataError(f"more than {MAX_SETTINGS:,} settings.")
        words = iter(start.arguments)
        for word in words:
            option, equals, value = word.partition("=")
            text, key = display(word).strip(), display(option).lstrip("+~").strip()
            pattern = rf"^(?![ \t]*#).*?(?<![\w.]){re.escape(key)}="
            match = re.search(pattern, self.text, re.MULTILINE)
            line = self.text.count("\n", 0, match.end()) + 1 if match else start.line
            paths = re.findall(rf"({START}|{SOURCE})([^,'\"\]}}\s]*)", word)
            folders = [folder for folder, path in paths if not Path(path).exists()]
            names = [*runs.names(word), *(["PWD"] if START in folders else [])]
            is_open = bool(folders or MARK.search(word))
            if option in {"--config-name", "-cn"}:
                self.config_name = (value if equals else next(words, "")).removesuffix(".yaml")
            elif option in {"--config-path", "-cp"}:
                _ = equals or next(words, "")
            elif option.startswith("-") or MARK.search(option) or (is_open and not equals):
                why = f"only a run can tell it ({env_options(names) or '--arg VALUE'})"
                self.note(line, f"{text[:80]!r} is not taken over{f': {why}' * is_open}.")
            elif is_secret_value(key, display(value).strip()) or self.redactor.text(text) != text:
                self.add_secret(key, f"(line {line})")
            else:
                try:
                    setting = self.setting(text, line, names if is_open else None)
                except UsageError as error:
                    ends = [known for known in self.release.keys if known.endswith(f".{key}")]
                    near = f" verl has {ends[0]!r}." if ends else ""
                    reason = str(error).removeprefix(": ")[:400].rstrip(".")
                    text = f"{reason} (line {line}).{near}"
                    self.add("error", "L-76", key, text, "It is not in the recipe.")
                else:
                    if not is_open or setting.latest.key != NAME:
                        yield setting

    def setting(self, text: str, line: int, names: Sequence[str] | None) -> Setting:
        """Return a setting by its names; `names` are variables to give if only a run can tell it."""
        key, _, value = text.partition("=")
        is_open, way = names is not None, env_options((names or [])[:1])
        if not re.search(r"[.@/]", key) and key.lstrip("+") != "model_engine":
            raise UsageError(f"{text[:80]!r} is not a setting of one key with its value")
        (override,) = parse_overrides([f"{key}={MISSING}" if is_open else text], "")
        override = replace(override, value=_plain(override.value))
        key, release = override.key, self.release
        latest = key if override.is_group else to_latest_key(key, megatron=release.megatron)
        open_text = f"{value[:80]} (line {line}) is known only when the script runs"
        if is_open and _DECIDING.fullmatch(latest):
            fix = f"Pass {way}." if way else "Write its value into the script."
            raise DataError(f"{key}: {open_text}, and the recipe depends on it. {fix}")
        if latest in _ENGINE and str(override.value) not in {*_STRATEGIES, "dp"}:
            is_known = value in release.engines
            raise DataError(
                f"trains with {value} (line {line}), an engine {f'of verl {release.verl} ' * is_known}"
                f"that rewardkit does not plan for yet: recipes train with {', '.join(_STRATEGIES)}. "
                "Start this script as it is."
            )
        by_latest = replace(override, key=latest, written=key)
        checked = replace(by_latest, value=None) if is_open else by_latest
        passed, notes = translate([checked], release)
        way = f" or import with {way}" if way else ""
        if is_open and latest == NAME:
            text = f"{open_text}: the recipe has a name of its own."
            self.add("info", "unresolved", key, text, f"Set its name{way}.")
        elif is_open:
            text = f"{open_text}: it is ??? in the recipe."
            self.add("warning", "unresolved", key, text, f"Put the value there{way}.")
        return Setting(override, by_latest, passed, notes)

    def add_secret(self, name: str, where: str) -> None:
        # The bracket keeps "NAME: looks" from being taken for a variable and its value, and hidden.
        text = f"{where} looks like a secret; it is not in the recipe, which others read."
        fix = "Export it where the run starts, or pass it to rewardkit train after `--`."
        self.add("info", "secret", name, text, fix)

    def find_ignored(self, settings: Iterable[Setting]) -> None:
        """Find where the release does not do what the script says; a lost reward is an error."""
        verl, ignored = f"verl {self.release.verl}", dict[IgnoredKey, list[Setting]]()
        for setting in settings:
            key = setting.original.key
            if not setting.original.is_group and (entry := self.release.ignored(key)):
                ignored.setdefault(entry, []).append(setting)
                continue
            severity: Severity = "info" if self.release.lists(key) else "warning"
            for note in setting.notes:
                fix = "The recipe has it so." if note.kind == "renamed" else ""
                self.add(severity, note.kind, key, note.text, fix)
        for entry, each in ignored.items():
            names = ", ".join(setting.original.key for setting in each)
            keys = {override.key for setting in each for override in setting.overrides}
            new = ", ".join(sorted(key for key in keys if not self.release.ignored(key))[:6])
            fix = f"The recipe has {new}." if new else "It is left out of the command."
            rule = "does-not-start" if entry.fatal else "ignored"
            severity, text = "warning", f"{verl}: {entry.why}."
            for original in (setting.original for setting in each):
                if original.key == "custom_reward_function.path":
                    severity, rule = "error", "reward-ignored"
                    text = f"{verl} trains WITHOUT the reward function of this script ({original.value}): "
                    text += (
                        "it takes these keys and ignores them silently, and its own scorer of each "
                    )
                    text += "data_source decides."
            self.add(severity, rule, names, text, fix)

    def find_repeated(self, settings: Iterable[Setting]) -> None:
        last = {setting.latest.key: setting.original for setting in settings}
        for setting in settings:
            own, other = setting.original, last[setting.latest.key]
            if own.value != other.value:
                text = (
                    f"given more than once with different values; {other.value!r} counts, the last."
                )
                names = ", ".join(dict.fromkeys((own.key, other.key)))
                self.add("warning", "L-76", names, text, "Delete the others.")

    def find_trainer(self, start: Start) -> None:
        """Find what the recipe's command does not have of what starts the trainer."""
        module, name = start.module, self.config_name
        if module == DAPO_RECIPE and not self.release.dapo_recipe:
            text = f"not part of verl {self.release.verl}, whose own trainer samples dynamically."
            self.add("warning", "module", module, text, f"The recipe starts {TRAINER}.")
        elif module not in {"", TRAINER, DAPO_RECIPE}:
            text = f"a trainer of its own: the recipe starts {TRAINER}, without what it adds."
            self.add("error", "module", module, text, "Start the script as it is to train with it.")
        if name not in {"", "ppo_trainer", "ppo_megatron_trainer", "dapo_trainer"}:
            text = "this configuration is not verl's: the script does not have its settings."
            fix = "Add its settings under verl:."
            self.add("warning", "config-name", f"--config-name={name}", text, fix)
        words = list(takewhile(lambda word: not _PYTHON.fullmatch(word), start.launcher))
        words = list(dropwhile(_PLAIN.fullmatch, words))
        if words:
            program = PurePath(words[0]).name
            text = f"`{display(' '.join(words))[:400]}` starts verl in the script, and not in the recipe."
            other = "Start the recipe through it as well if the run needs it."
            self.add("warning", "launcher", program, text, _LAUNCHERS.get(program, other))

    def variables(self, start: Start) -> Iterator[tuple[str, str]]:
        """Yield the exports that are settings of the run, not only of the script, and no secrets."""
        exports = {k: value for k, value in start.variables.items() if not _SHELL.fullmatch(k)}
        if any(PurePath(word).name == "env" for word in start.launcher):
            exports |= dict(word.split("=", 1) for word in start.launcher if "=" in word)
        for name, raw in sorted(exports.items()):
            value = display(raw)
            is_set = re.search(rf"(?<![\w$.]){name}=|export[^\n;&|]{{0,500}}\b{name}\b", self.text)
            is_read = not _SETTING.fullmatch(name) and re.search(rf"\$\{{?{name}\b", self.text)
            if not is_set or is_read or (name == "RAY_ADDRESS" and "submit" in start.launcher):
                continue
            if MARK.search(raw):
                text = f"only a run can tell it ({value[:80]})."
                self.add("info", "unresolved", name, text, "Set it under env:.")
            elif is_secret_name(name) or self.redactor.text(value) != value:
                self.add_secret(name, "(a variable)")
            elif _INTERFACE.fullmatch(name):
                text = f"differs between nodes, so each detects its own; the script has {value!r}."
                self.add("info", "interface", name, text, "Set cluster.interface if all have it.")
            else:
                yield name, value

    def draft(
        self, settings: Sequence[Setting], start: Start, env: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return a recipe with the effect of the script, as `read_recipe` takes it."""
        latest = {setting.latest.key: setting for setting in settings}
        values = {key: setting.latest.value for key, setting in latest.items()}
        own = DAPO_RECIPE_KEYS if start.module == DAPO_RECIPE else {}
        known = {to_latest_key(key): value for key, value in own.items()} | values
        overrides = [override for setting in latest.values() for override in setting.overrides]
        release, effective = self.release, dict(self.release.keys)
        effective |= {override.key: override.value for override in overrides}
        config = {}
        for name in effective:
            key = to_latest_key(name, megatron=release.megatron)
            config[key if release.name_of(key) == name else name] = resolve(name, effective)
        config |= {key: value for key, value in known.items() if not str(value).startswith("${")}
        tree = self.choices(values, config, start)
        has_file = values.get(_REWARD[0]) not in (None, "", MISSING)
        fields = _FIELDS - (set() if has_file else set(_REWARD))
        own_fields = [latest[key].latest for key in values if key in fields and values[key]]
        stub = tree | {"model": MISSING, "data": {"train": MISSING, "val": MISSING}}
        stub |= {"reward": {"scorer": "verl"}}
        base = make_plan(read_recipe(stub, self.where), release.verl, own_fields)
        files = {"train": base.recipe.data.train, "val": base.recipe.data.val}
        tree |= {
            "nodes": base.recipe.nodes,
            "devices_per_node": base.recipe.devices_per_node,
            "model": base.recipe.model,
            "data": {name: each[0] if len(each) == 1 else each for name, each in files.items()},
            "reward": {"scorer": base.recipe.reward.scorer},
        }
        for key in _INPUTS:
            if not values.get(key):
                text = "the script does not set it: it is ??? in the recipe."
                self.add("warning", "incomplete", key, text, "Put the value there.")
        own_env = {name: value for name, value in env.items() if base.env.get(name) != value}
        tree |= {"env": own_env} if own_env else {}
        tree["verl"] = self.verl_section(latest, config, fields, base)
        try:
            make_plan(read_recipe(tree, self.where), release.verl)
        except RewardkitError as error:
            self.add("error", "plan", "the recipe", f"cannot be planned: {error}")
        return tree

    def choices(
        self, values: Mapping[str, Any], config: Mapping[str, Any], start: Start
    ) -> dict[str, Any]:
        """Return the fields that no single setting has."""
        stem, estimator = Path(self.where).stem, config.get("algorithm.adv_estimator")
        is_dapo = (
            start.module == DAPO_RECIPE,
            config.get("algorithm.filter_groups.enable") is True,
            config.get("reward.reward_manager.name") == "dapo",
        )
        device = values.get("trainer.device") or start.variables.get("DEVICE")
        if not device and re.search(r"(?<![a-z])(npu|ascend)(?![a-z])", stem.lower()):
            text = f"npu, from the name of the script, {stem}; the script itself does not say it."
            device, fix = "npu", "Set devices: gpu in the recipe if it runs on GPUs."
            self.add("info", "devices", "devices", text, fix)
        strategy = "fsdp2" if config.get(f"{ACTOR}.strategy") == "fsdp2" else "fsdp"
        name = re.sub(r"[^\w.\-]+", "-", str(values.get(NAME) or stem)).strip("-.")[:80]
        return {
            "name": name or "imported",
            "about": f"imported from {Path(self.where).name}",
            "algorithm": "ppo" if estimator == "gae" else "dapo" if any(is_dapo) else "grpo",
            "strategy": "megatron" if self.release.megatron else strategy,
            "devices": device if device in ("npu", "cpu") else "gpu",
        }

    def verl_section(
        self,
        latest: Mapping[str, Setting],
        config: Mapping[str, Any],
        fields: frozenset[str],
        base: Plan,
    ) -> dict[str, Any]:
        """Return what the fields do not set: other settings, and verl's defaults that they change."""
        release, section = base.release, dict[str, Any]()
        for key, setting in latest.items():
            name, sign, value = release.name_of(key), setting.latest.sign, setting.latest.value
            is_read = release.lists(name) or release.accepts_unlisted(name)
            sign = sign if sign == "~" or not is_read else ""
            is_passed = {*map(str, setting.overrides)} <= {*base.arguments}
            is_planned = is_passed and base.settings.get(key) == value
            if sign or not (is_planned or key in {*fields, "model_engine"}):
                section[f"{sign}{key}"] = value
        if config.get(f"{OVERLONG}.enable") is True:
            section.setdefault("reward.reward_kwargs.max_resp_len", "${data.max_response_length}")
        for key, value in base.settings.items():
            default = config.get(key)
            reasons = [reason for end, reason in _OWN_DEFAULTS.items() if key.endswith(end)]
            if key in latest or default is None or value in (default, MISSING):
                continue
            if reasons:
                text = f"not in the script (verl's default: {default}): {reasons[0]} ({value})."
                self.add("info", "differs", key, text)
            else:
                section[key] = default
        return section


def _is_ours(start: Start) -> bool:
    names = (word.lstrip("+~") for word in start.arguments)
    is_known = any(name.startswith(("actor_rollout_ref", "algorithm.")) for name in names)
    return not OTHER_NAME.fullmatch(start.module) and bool(
        is_known or TRAINER_NAME.fullmatch(start.module)
    )


def _no_run(run: ScriptRun) -> str:
    for line, words in run.others.items():
        for word in words[:3]:
            if word.endswith(".sh"):
                return f"does not start verl: line {line} runs {display(word)}. Import that script."
    if any(run.ends):
        return (
            f"ends at line {max(run.ends)} before it starts verl. Give what it asks for: --env "
            "NAME=VALUE for its variables, --arg VALUE for its arguments."
        )
    return f"does not start verl (python3 -m {TRAINER} ...) and has no key=value."


def _plain(value: Any) -> Any:
    """Return a value without Hydra's own grammar: `{a:1}` is a mapping, `choice(1,2)` is refused."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, Raw):
        return value
    inner = re.fullmatch(r"\{([^{}\[\]'\"()]*)\}", value)
    pairs = [item.split(":", 1) for item in inner[1].split(",") if item.strip()] if inner else [[]]
    if not all(len(pair) == 2 and pair[0].strip() for pair in pairs):
        raise UsageError("a value of Hydra's own grammar, which a recipe cannot have")
    return {name.strip(): parse_value(item.strip()) for name, item in pairs}
