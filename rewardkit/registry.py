"""The names of datasets and scorers, and the scorer of each `data_source`.

Names point to `"module:attribute"` strings; nothing is imported before it is needed. There are three
ways to add one:

* an entry point of an installed package, in the group `rewardkit.datasets`, `rewardkit.scorers` or
  `rewardkit.data_sources` (whose entry points are named after a `data_source`); `rewardkit new`
  writes such a package::

      [project.entry-points."rewardkit.data_sources"]
      "acme/arithmetic" = "acme_rewards.arithmetic:score"

* on the command line, the path of a file: `my_reward.py:score`;
* for one row, the name of a registered scorer in its `extra_info.scorer`.

`REWARDKIT_PLUGINS=0` ignores the entry points of other packages.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rewardkit.errors import SourceError, UnknownNameError, UsageError, call_catching

#: The target of a dataset that its card describes completely.
FROM_CARD = "rewardkit.preprocess.card_dataset:dataset_of_card"


def card_folder() -> Path:
    """Return the folder of the built-in datasets' cards: in the package, or in a clone beside it."""
    package = Path(__file__).parent
    folder = package / "data_cards"
    return folder if folder.is_dir() else package.parent / "data_cards"


#: Every card in `data_cards/` is a dataset; three of them need code.
DATASETS: Mapping[str, str] = {
    **{path.stem: FROM_CARD for path in sorted(card_folder().glob("*.md"))},
    "dapo-math-17k": "rewardkit.preprocess.datasets.dapo_math_17k:DATASET",
    "dianjin-mcq": "rewardkit.preprocess.datasets.dianjin_mcq:DATASET",
    "math": "rewardkit.preprocess.datasets.math:DATASET",
}

SCORERS: Mapping[str, str] = {
    name: f"rewardkit.scorers.{name}:score"
    for name in (
        "auto code function_call geometry3k gsm8k instructions json_schema judge math math_dapo "
        "math_verify mcq qa sql"
    ).split()
}

#: Lines of a scorer and the `data_source` of rows without a scorer's name that it scores, as verl's
#: scripts and `prep` write them; in the order in which `rewardkit list` prints them. `aime*` is verl's
#: own rule: every other name that begins so.
_SOURCES = """
gsm8k openai/gsm8k
math DigitalLearningGmbH/MATH-lighteval HuggingFaceH4/MATH-500 aime aime_2024 aime_2025
math aime_2026 aime* brumo_2025 ByteDance-Seed/BeyondAIME lighteval/MATH math
mcq cflue
math_dapo math_dapo math_dapo_reasoning
geometry3k hiyouga/geometry3k
math agentica-org/DeepScaleR-Preview-Dataset AI-MO/NuminaMath-1.5 open-r1/OpenR1-Math-220k
math Open-Reasoner-Zero/orz_math_57k_collection POLARIS-Project/Polaris-Dataset-53K
math PRIME-RL/Eurus-2-RL-Data Skywork/Skywork-OR1-RL-Data SynthLabsAI/Big-Math-RL-Verified
math zwhe99/DeepMath-103K
qa searchR1_nq searchR1_triviaqa searchR1_popqa searchR1_hotpotqa searchR1_2wikimultihopqa
qa searchR1_musique searchR1_bamboogle
math hmmt hmmt_feb_2023 hmmt_feb_2024 hmmt_feb_2025 hmmt_nov_2025 hmmt_feb_2026 math-ai/amc23
math math-ai/minervamath math_perturb math_perturb_simple math_perturb_hard olympiadbench
math olympiadbench_maths olympiadbench_physics olymmath olymmath_en_easy olymmath_en_hard
math olymmath_zh_easy olymmath_zh_hard AI4Math/MathVista
math MARIO-Math-Reasoning/Gaokao2023-Math-En MathLLMs/MathVision
mcq TIGER-Lab/MMLU-Pro gpqa_diamond
math hails/agieval-gaokao-mathcloze
mcq hails/agieval-gaokao-mathqa
code apps codecontests codeforces taco agentica-org/DeepCoder-Preview-Dataset codeparrot/apps
code evalplus/humanevalplus evalplus/mbppplus google-research-datasets/mbpp KodCode/KodCode-Light-RL-10K
code likaixin/TACO-verified livecodebench/code_generation_lite newfacade/LeetCodeDataset
code open-r1/codeforces open-r1/verifiable-coding-problems-python openai/openai_humaneval
code PRIME-RL/Eurus-2-RL-Data-code
function_call Salesforce/xlam-function-calling-60k rlla
function_call gorilla-llm/Berkeley-Function-Calling-Leaderboard
sql birdsql/bird gretelai/synthetic_text_to_sql xlangai/spider
instructions allenai/IFBench_test allenai/IF_multi_constraints_upto5 allenai/RLVR-IFeval google/IFEval
instructions nvidia/Nemotron-RL-instruction_following
math numina_aops_forum numina_synthetic_math numina_amc_aime numina_synthetic_amc numina_cn_k12
math numina_olympiads imo_answerbench lmms-lab/multimodal-open-r1-8k-verified weitianwen/cmath
"""
DATA_SOURCES: Mapping[str, str] = {
    source: SCORERS[name]
    for name, *sources in map(str.split, _SOURCES.strip().splitlines())
    for source in sources
}

#: Where verl's default reward evaluates responses as Python, and the data sources of these rows
#: (`default_compute_score` in utils/reward_score/__init__.py; 0.7.1 and 0.9.1).
VERL_EVALUATES: Mapping[str, tuple[str, ...]] = {
    "verl's default reward runs Python's eval on the model's answer "
    "(utils/reward_score/prime_math/grader.py, lines 169, 299 and 301; CVE-2026-6878)": tuple(
        source for source in DATA_SOURCES if source.startswith("numina_")
    ),
    "verl's default reward runs Python's eval on the model's answer if the gold is not an integer "
    "(utils/reward_score/geo3k.py: mathruler calls SymPy's parse_expr)": ("hiyouga/geometry3k",),
}
#: What to do about them.
REPLACE_VERL = "give verl a reward: reward.custom_reward_function.path=$(rewardkit path auto)"

#: The function of a reward's file that verl calls by default, and that a file's name alone means.
REWARD_FUNCTION = "compute_score"


def known(group: str) -> dict[str, str]:
    """Return all names of a group (`datasets`, `scorers` or `data_sources`) with their targets."""
    built_in = {"datasets": DATASETS, "scorers": SCORERS, "data_sources": DATA_SOURCES}[group]
    return {**_plugins(group), **built_in}


def target(group: str, name: str) -> str:
    """Return the `"module:attribute"` of a name; an unknown one is an `UnknownNameError`."""
    names = known(group)
    if name not in names:
        raise UnknownNameError(
            f"unknown {group[:-1].replace('_', ' ')} {name!r}.{did_you_mean(name, names)} "
            f"Known: {', '.join(sorted(names))}."
        )
    return names[name]


def load(group: str, name: str) -> Any:
    """Return the object of a name or of a `file.py:attribute` path.

    Raises:
        SourceError: there is no such file.
        UsageError: there is no such name, or it cannot be imported or lacks the attribute.
    """
    if not is_path(name):
        return import_target(target(group, name), name)
    path, _, attribute = (with_function(name) if group == "scorers" else name).partition(":")
    if not attribute:
        raise UsageError(f"{name}: add the name to load after a colon, as in {path}:score.")
    if not Path(path).is_file():
        raise SourceError(f"{path}: no such file.")
    loaded = _attribute(_import_file(path), attribute, name)
    if group == "scorers" and not callable(loaded):
        raise UsageError(f"{name} is {type(loaded).__name__}, not a function.")
    return loaded


def import_target(place: str, name: str) -> Any:
    """Return the object at `"module:attribute"`; `name` is its name, for messages."""
    module_name, _, attribute = place.partition(":")
    return _attribute(_import(module_name), attribute, name)


def home(group: str, name: str) -> Path | None:
    """Return the folder of the module of a registered name; None if the name is unknown.

    The folder has the card and the sample of a plug-in: `NAME.md` and `sample/NAME/SPLIT.*`.
    """
    module_name = known(group).get(name, "").partition(":")[0]
    file = _import(module_name).__file__ if module_name else None
    return Path(file).parent if file else None


def is_path(name: str) -> bool:
    """Return whether a name is the path of a Python file, with or without `:attribute`."""
    return name.partition(":")[0].endswith(".py")


def with_function(scorer: str) -> str:
    """Return a scorer's name; a file without a function, `my.py`, means `my.py:compute_score`."""
    return f"{scorer}:{REWARD_FUNCTION}" if is_path(scorer) and ":" not in scorer else scorer


def _import_file(path: str) -> ModuleType:
    """Import a user's file with an entry in `sys.modules`, which its dataclasses need."""
    spec = importlib.util.spec_from_file_location(f"rewardkit_user_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file.")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    error = call_catching(spec.loader.exec_module, module)
    if isinstance(error, Exception):
        from rewardkit.redact import process_redactor

        reason = process_redactor().text(f"{type(error).__name__}: {error}")
        raise UsageError(f"{path} does not import: {reason.rstrip('.')}.") from error
    return module


def did_you_mean(name: str, names: Mapping[str, object] | list[str]) -> str:
    """Return a sentence that suggests similar names, whatever their case, or an empty string."""
    from difflib import get_close_matches

    spellings = {known_name.lower(): known_name for known_name in names}
    matches = get_close_matches(name.lower(), list(spellings), n=2, cutoff=0.5)
    near = [spellings[match] for match in matches]
    return f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


@cache
def _plugins(group: str) -> dict[str, str]:
    if os.environ.get("REWARDKIT_PLUGINS") == "0":
        return {}
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=f"rewardkit.{group}")}


def _import(module_name: str) -> ModuleType:
    module = call_catching(importlib.import_module, module_name)
    if isinstance(module, Exception):
        raise UsageError(f"{module_name} does not import: {module}.") from module
    return module


def _attribute(module: ModuleType, attribute: str, name: str) -> Any:
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if _is_public(key, value, module)]
        place = name.partition(":")[0] if is_path(name) else module.__name__
        has = f"It has {', '.join(own[:10])}" if own else "It has no functions"
        has += f"; name one as {place}:{own[0]}." if own and is_path(name) else "."
        raise UnknownNameError(f"{place} has no {attribute!r}.{did_you_mean(attribute, own)} {has}")
    return getattr(module, attribute)


def _is_public(name: str, value: object, module: ModuleType) -> bool:
    """Return whether a module defines a public name itself, rather than importing it."""
    own = getattr(value, "__module__", module.__name__) == module.__name__
    return own and not name.startswith("_") and not isinstance(value, ModuleType)
