"""Import launch scripts and compare each plan, key by key, with the arguments that bash passes.

    python benchmarks/import_scripts.py --scripts FOLDER [--verl-version 0.9.1] [--notes] [--json]

The folder has scripts NAME.sh with NAME.json: `argv` is the command that bash starts with
HOME=/HOME/user in the folder /CWD, from a script at /SCRIPTS/NAME.sh (an `@` in NAME is a `/`).
NAME@ANY.json is a run of the same script with the variables `set_env` and the `arguments`. A script
gets the worst verdict of its keys; a key with verl's own default may be absent on either side. No
script is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hydra_text import hydra_value, is_equal

from rewardkit.errors import RewardkitError
from rewardkit.launch.plan import Plan, make_plan
from rewardkit.launch.recipe import read_recipe
from rewardkit.launch.script_import.importer import ImportedScript, import_script, recipe_text
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import LATEST, to_latest_key
from rewardkit.strict_yaml import read_yaml

#: The folders of the recorded runs.
HOME, FOLDER, SCRIPTS = "/HOME/user", "/CWD", "/SCRIPTS"

#: Verdicts, the worst first, and what they mean.
VERDICTS = {
    "shell left in": "a value has `$` or a backquote where bash passed its result",
    "wrong value": "a value differs from bash's",
    "foreign key": "the plan sets what neither bash nor verl's default has, and does not say so",
    "lost key": "bash passes a key that the plan does not have, and nothing says so",
    "refused": "the import or the plan stops with a reason",
    "equal, less what is reported": "the other keys are equal; a finding names each key left out",
    "equal": "the plan has bash's keys and values",
}

#: Configurations of verl that a plan knows without a name.
CONFIGS = frozenset({"", "ppo_trainer", "ppo_megatron_trainer", "dapo_trainer"})

#: Settings without which verl's dapo reward manager fails: a plan completes them.
COMPLETED = frozenset(
    {
        "reward.reward_kwargs.max_resp_len",
        "reward.reward_kwargs.overlong_buffer_cfg.enable",
        "reward.reward_kwargs.overlong_buffer_cfg.len",
        "reward.reward_kwargs.overlong_buffer_cfg.log",
        "reward.reward_kwargs.overlong_buffer_cfg.penalty_factor",
    }
)

#: How a script says that it trains with Megatron, and how a plan does.
ENGINE_KEYS = frozenset({"model_engine", "--config-name"})

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,[^{}]*)?\}")

#: A time stamp of `date`, in the names of experiments.
_TIME = re.compile(
    r"20\d{6}(?:[-_T]?\d{4,6})?|20\d\d-\d\d-\d\d(?:[-_T]\d\d[-:]?\d\d(?:[-:]?\d\d)?)?"
)


class BashRun(NamedTuple):
    """A script and the command that bash starts with its variables and arguments."""

    name: str
    script: Path
    argv: list[str]
    set_env: dict[str, str]
    arguments: list[str]


class Verdict(NamedTuple):
    """What became of one run: a key of `VERDICTS`, and each difference in a line."""

    name: str
    verdict: str
    notes: list[str]


def read_runs(folder: Path) -> list[BashRun]:
    """Return the recorded runs of a folder."""
    runs = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        name = file.name.removesuffix(".json")
        script = name if "set_env" not in record and "arguments" not in record else _base(name)
        runs.append(
            BashRun(
                name,
                folder / f"{script}.sh",
                record["argv"],
                record.get("set_env", {}),
                record.get("arguments", []),
            )
        )
    return runs


def _base(name: str) -> str:
    return name.rpartition("@")[0]


def judge(run: BashRun, verl: str) -> Verdict:
    """Import the script of a run, plan it, and compare the plan with bash's command.

    The working directory stands for /CWD, and SCRIPTS beside it for /SCRIPTS.
    """
    text = run.script.read_text(encoding="utf-8")
    place = Path.cwd().parent / "SCRIPTS" / run.script.name.replace("@", "/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    where, os.environ["HOME"] = str(place), HOME
    try:
        imported = import_script(text, where, verl, env=run.set_env, arguments=run.arguments)
        plan = make_plan(read_recipe(read_yaml(recipe_text(imported), where), where), verl)
    except RewardkitError as error:
        return Verdict(run.name, "refused", [_portable(str(error))])
    notes = list(differences(run.argv, plan, imported))
    ranks = list(VERDICTS)
    verdict = min((kind for kind, _ in notes), key=ranks.index, default="equal")
    return Verdict(run.name, verdict, [f"{kind}: {text}" for kind, text in notes])


def differences(
    argv: Sequence[str], plan: Plan, imported: ImportedScript
) -> Iterator[tuple[str, str]]:
    """Yield a verdict and a text for every key that differs."""
    by_bash, by_plan = settings_of(argv), settings_of(plan.local_arguments())
    reports = [*map(str, imported.findings), *map(str, plan.notes)]
    if (module := module_of(argv)) not in {"", plan.module}:
        is_reported = is_named([module], reports)
        kind = "equal, less what is reported" if is_reported else "wrong value"
        yield kind, f"bash starts {module}, plan {plan.module}"
    pairs = dict(pair_keys(by_bash, by_plan, plan))
    for key, value in by_bash.items():
        if key in ENGINE_KEYS and _engine(by_bash) == _engine(by_plan):
            continue
        planned = by_plan.get(pairs.get(key, ""))
        names = [key, *_other_names(key, plan)]
        if planned is None or key in ENGINE_KEYS:
            if not is_equal(_comparable(key, value), _in_effect(key, plan)):
                is_left_out = is_named(names, reports)
                yield (
                    "equal, less what is reported" if is_left_out else "lost key",
                    f"{key}={value[:100]}",
                )
        elif not is_equal(_comparable(key, value), _comparable(key, planned)):
            is_name = key == "trainer.experiment_name" or bool(_TIME.search(value))
            is_left_out = is_name and is_named(names, reports)
            yield (
                "equal, less what is reported" if is_left_out else _kind(value, planned),
                f"{key}: bash {value[:100]!r}, plan {_portable(planned)[:100]!r}",
            )
    for key in sorted(by_plan.keys() - set(pairs.values()) - ENGINE_KEYS):
        names = [key, *_other_names(key, plan)]
        is_harmless = is_equal(hydra_value(by_plan[key]), _default(key, plan))
        if not (is_harmless or COMPLETED.intersection(names) or is_named(names, reports)):
            yield "foreign key", f"{key}={by_plan[key][:100]}"


def _kind(value: str, planned: str) -> str:
    """Return the verdict on a value that differs from bash's."""
    is_shell = re.search(r"[$`]", planned) and not re.search(r"[$`]", value)
    return "shell left in" if is_shell else "wrong value"


def module_of(argv: Sequence[str]) -> str:
    """Return the module that a command starts with `-m`; "" if it starts none."""
    return argv[argv.index("-m") + 1] if "-m" in argv else ""


def settings_of(arguments: Sequence[str]) -> dict[str, str]:
    """Return Hydra's overrides among the words of a command, and the name of the configuration.

    Hydra merges a mapping into the section: each of its keys is an override.
    """
    settings = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in {"--config-name", "-cn"}:
            value = value if equals else next(words, "")
            if value.removesuffix(".yaml") not in CONFIGS or "megatron" in value:
                settings["--config-name"] = value.removesuffix(".yaml")
        elif re.match(r"~[\w.]+$", word):
            settings[word[1:]] = "<removed>"
        elif equals and re.match(r"[+~]*[\w./@-]+$", name) and not name.startswith("-"):
            settings.update(_flat(name.lstrip("+~"), value))
    return settings


def _flat(key: str, text: str) -> Iterator[tuple[str, str]]:
    value = hydra_value(text)
    if not isinstance(value, dict) or not value:
        yield key, text
        return
    for name, item in value.items():
        yield from _flat(f"{key}.{name}", format_value(item))


def pair_keys(
    by_bash: Mapping[str, str], by_plan: Mapping[str, str], plan: Plan
) -> Iterator[tuple[str, str]]:
    """Yield each key of bash's command and the plan's name for it: its own, else its new name."""
    names = {to_latest_key(key, megatron=plan.release.megatron): key for key in by_plan}
    for key in by_bash:
        latest = to_latest_key(key, megatron=plan.release.megatron)
        if key in by_plan or latest in names:
            yield key, key if key in by_plan else names[latest]


def _engine(settings: Mapping[str, str]) -> str:
    """Return the engine that a command names: by its configuration, or as a group."""
    name = settings.get("--config-name", "")
    if name and name not in CONFIGS:
        return name
    return "megatron" if name else settings.get("model_engine", "dp")


def _other_names(key: str, plan: Plan) -> list[str]:
    latest = to_latest_key(key, megatron=plan.release.megatron)
    return [name for name in (latest, plan.release.name_of(latest)) if name]


def is_named(names: Sequence[str], reports: Sequence[str]) -> bool:
    """Whether a report has one of the names as a whole word."""
    pattern = "|".join(map(re.escape, names))
    return any(re.search(rf"(?<![\w.])(?:{pattern})(?![\w]|\.\w)", report) for report in reports)


def _portable(text: str) -> str:
    """Return a text with the folders of the recorded run."""
    here = Path.cwd()
    return text.replace(str(here), FOLDER).replace(str(here.parent / "SCRIPTS"), SCRIPTS)


def _comparable(key: str, text: str) -> Any:
    value = hydra_value(_portable(text))
    if key.endswith("custom_reward_function.path") and isinstance(value, str):
        return str(Path(FOLDER, value))
    if key in {"data.train_files", "data.val_files"} and isinstance(value, list):
        return value[0] if len(value) == 1 else value
    return value


def _in_effect(key: str, plan: Plan) -> Any:
    """Return the value that verl has with a plan, also where the plan does not set it."""
    return hydra_value(format_value(plan.get(key)))


def _default(key: str, plan: Plan) -> Any:
    """Return the value that verl has for a key that nothing sets; a reference takes the plan's."""
    value = plan.release.keys.get(key, "<no default>")
    if reference := _REFERENCE.fullmatch(str(value)):
        return _in_effect(reference[1], plan)
    return hydra_value(format_value(value))


def print_table(verdicts: Sequence[Verdict], seconds: float, with_notes: bool) -> None:
    """Print how many scripts and other runs have each verdict, and on request every difference."""
    counts = Counter((verdict.verdict, _is_variant(verdict)) for verdict in verdicts)
    print("| verdict | scripts | with variables or arguments | meaning |\n|---|---:|---:|---|")
    for name in reversed(VERDICTS):
        print(f"| {name} | {counts[name, False]} | {counts[name, True]} | {VERDICTS[name]} |")
    print(f"\n{len(verdicts)} imports in {seconds:.1f} s.")
    if with_notes:
        for verdict in verdicts:
            for note in verdict.notes or ["-"]:
                print(f"{verdict.name}: {verdict.verdict}: {note}")


def _is_variant(verdict: Verdict) -> bool:
    return "=" in verdict.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scripts", type=Path, required=True, help="folder of scripts and runs")
    parser.add_argument("--verl-version", default=LATEST, help="release of verl to plan for")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--notes", action="store_true", help="list every difference")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    options = parser.parse_args()
    runs = read_runs(options.scripts.absolute())
    if not runs:
        sys.exit(f"{options.scripts} has no NAME.json with the arguments that bash passes.")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "CWD").mkdir()
        os.chdir(Path(folder, "CWD"))
        with ProcessPoolExecutor(options.jobs) as pool:
            each = partial(judge, verl=options.verl_version)
            verdicts = list(pool.map(each, runs, chunksize=8))
    if options.json:
        print(json.dumps([verdict._asdict() for verdict in verdicts], indent=1))
    else:
        print_table(verdicts, time.perf_counter() - started, options.notes)


if __name__ == "__main__":
    main()
