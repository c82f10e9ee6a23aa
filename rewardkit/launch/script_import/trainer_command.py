"""Commands that start a trainer: which module of verl they run, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence

OVERRIDE = re.compile(r"[+~]*(?:model_engine|\w+[./@][\w./@\-]*)=|~\w+\.")
_SECTION = re.compile(
    r"[+~]*(?:actor_rollout_ref|algorithm|critic|custom_reward_function|data|model|optim|reward"
    r"|reward_model|rollout|trainer)[.@][\w.]*="
)
_MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}", re.ASCII)
_FILE = re.compile(r"[^\0]{0,200}\.py")
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)")
_INTERPRETER = re.compile(r"(?:.*/)?python[\d.]*")
_RL_MODULE = re.compile(r"(?:.*\.)?(?:\w*main_(?:ppo|dapo)\w*)")
_SUPERVISED = re.compile(r"(?:^|[._])sft(?:[._]|$)")

#: Trainers and tools of verl that are not runs of reinforcement learning, by the end of the module.
_OTHER = {
    "main_eval": "verl's evaluation",
    "main_generation": "verl's generation",
    "main_generation_server": "verl's generation",
    "model_merger": "verl's merger of checkpoints",
}


def find_module(fields: Sequence[str]) -> int:
    """Return the place of a trainer's module in a command, as `-m MODULE` or a file; 0 without it."""
    for i, text in enumerate(fields[1:], 1):
        is_module = fields[i - 1] == "-m" and _MODULE.fullmatch(text)
        is_file = _FILE.fullmatch(text) and any(map(_PYTHON.fullmatch, fields[:i]))
        if not (is_module or is_file) or text.startswith("torch."):
            continue
        module = module_name(text)
        if _RL_MODULE.fullmatch(module) or _other_kind(module):
            return i
        return i if any(_SECTION.match(field) for field in fields[i + 1 :]) else 0
    return 0


def launcher_words(before: Sequence[str]) -> tuple[str, ...]:
    """Return the words before the interpreter, of the words before a trainer's module or file."""
    words = list(before[:-1] if before and before[-1] == "-m" else before)
    pythons = [i for i, text in enumerate(words) if _INTERPRETER.fullmatch(text)]
    if pythons:
        return tuple(words[: pythons[-1]])
    return tuple(words)


def module_name(text: str) -> str:
    """Return a module as Python imports it; that of a file from its path."""
    return text.removesuffix(".py").lstrip("./").replace("/", ".")


def _other_kind(module: str) -> str:
    name = module.rpartition(".")[2]
    return "verl's supervised fine-tuning" if _SUPERVISED.search(module) else _OTHER.get(name, "")


def other_kind(module: str, arguments: Sequence[str]) -> str:
    """Return what a command starts instead of reinforcement learning; "" for a run of it."""
    if kind := _other_kind(module):
        return kind
    keys = [text.lstrip("+~") for text in arguments]
    if not module or _RL_MODULE.fullmatch(module):
        return ""
    if any(key.startswith(("actor_rollout_ref", "algorithm.")) for key in keys):
        return ""
    return "a program that takes no actor_rollout_ref.* settings"


def other_script(fields: Sequence[str]) -> str:
    """Return the script file that a command runs; "" if it runs none."""
    words = [field for field in fields if field not in {"nohup", "env", "exec", "time"}]
    if len(words) > 1 and re.fullmatch(r"(?:.*/)?(?:ba|z|da)?sh", words[0]):
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words and words[0].endswith(".sh") else ""
