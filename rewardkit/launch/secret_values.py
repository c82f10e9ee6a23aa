"""Secrets of a run: the plan has the names of variables, the environment has their values.

`train -- trainer.api_key=...` passes a secret. The plan, and so every script, manifest and message,
has `<secret:TRAINER_API_KEY>` in its place. A run on this machine gets the value; a generated
script reads it from its environment.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import parse_value, quote_text
from rewardkit.redact import Redactor, is_secret_value, redactor_of

MARK = re.compile(r"<secret:([A-Za-z_]\w*)>")

#: A mark in Hydra's quotes: the whole value of a setting.
_QUOTED_MARK = re.compile(rf"'{MARK.pattern}'")

#: Parts of a recipe that become verl's settings and may contain a secret.
_SETTINGS = (("verl",), ("reward", "options"))


def shell_word(value: str) -> str:
    """Quote a value as one word of a POSIX shell; every value of a script is quoted here.

    Secrets become variables of the shell that runs the script. The word is not valid inside quotes
    or `${...}`.
    """
    if not MARK.search(value):
        return shlex.quote(value)
    pieces = MARK.split(value)  # text, name, text, name, ...
    return "".join(
        f'"${{{piece}:?is a secret, export it}}"' if i % 2 else shlex.quote(piece) if piece else ""
        for i, piece in enumerate(pieces)
    )


def secret_variables(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the variables of the secrets in a command, each once."""
    return tuple(dict.fromkeys(MARK.findall("\n".join(arguments))))


def conceal_secrets(
    tree: Mapping[str, Any], overrides: list[str]
) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """Replace the secrets of a recipe and of overrides by marks.

    Args:
        tree: the recipe, as read from YAML.
        overrides: the command line's `key=value`.

    Returns:
        The recipe and the overrides with marks, and the secrets by their variables.

    Raises:
        UsageError: a secret is in a place where no variable can replace it.
    """
    redactor = redactor_of(os.environ, overrides).learn(tree)
    concealer = _Concealer(redactor)
    marked = [concealer.override(text) for text in overrides]
    return concealer.recipe(tree), marked, concealer.secrets


def reveal_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Replace the marks in an argument of verl, or in another value, by the secrets.

    Raises:
        UsageError: a secret is neither in `secrets` nor in the environment.
    """

    def value(name: str) -> str:
        secret = secrets.get(name) or os.environ.get(name)
        if not secret:
            raise UsageError(
                f"{name} is not set. Export it: it is a secret, which rewardkit writes into no file."
            )
        return secret

    text = _QUOTED_MARK.sub(lambda match: quote_text(value(match[1])), text)
    return MARK.sub(lambda match: value(match[1]), text)


class _Concealer:
    """Replaces secrets by marks, and remembers the secrets."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor, self.secrets = redactor, dict[str, str]()

    def override(self, text: str) -> str:
        """Return an override of the command line with a mark for its secret."""
        key, equals, value = text.partition("=")
        if not self._is_secret(key, value):
            return text
        return f"{key}{equals}{self._mark(key, str(parse_value(value.strip())), value.strip())}"

    def recipe(self, tree: Mapping[str, Any], place: str = "") -> dict[str, Any]:
        """Return a recipe, or a variant of a sweep, with marks for its secrets."""
        marked = dict(tree)
        for path in _SETTINGS:
            self._mark_settings(marked, path)
        for name, value in marked.items():
            if name == "sweep" and isinstance(value, Mapping):
                marked[name] = {
                    variant: self.recipe(part, f"sweep.{variant}.")
                    if isinstance(part, Mapping)
                    else part
                    for variant, part in value.items()
                }
            elif name != "verl":
                self._require_no_secret(f"{place}{name}", value)
        return marked

    def _mark_settings(self, tree: dict[str, Any], path: tuple[str, ...]) -> None:
        *parents, last = path
        for name in parents:
            if not isinstance(tree.get(name), Mapping):
                return
            tree[name] = dict(tree[name])
            tree = tree[name]
        if isinstance(tree.get(last), Mapping):
            tree[last] = self._with_marks(tree[last], "")

    def _with_marks(self, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {
                k: self._with_marks(v, f"{key}.{k}" if key else str(k)) for k, v in value.items()
            }
        if isinstance(value, str) and self._is_secret(key, value):
            return self._mark(key, value, "")
        if isinstance(value, list) and self.redactor.tree(value, key) != value:
            raise UsageError(
                f"{key}: a list with a secret would be written into files. Leave the secret out, and "
                "export it where verl runs."
            )
        return value

    def _is_secret(self, key: str, value: str) -> bool:
        if MARK.search(value):
            return False
        return (
            is_secret_value(key, _text_without_quotes(value)) or self.redactor.text(value) != value
        )

    def _mark(self, key: str, secret: str, raw: str) -> str:
        if raw[:1] in {"{", "["}:
            raise UsageError(
                f"{key}: a secret in a mapping or a list would be written into files. Pass it as "
                f"{key}.NAME=VALUE."
            )
        known = [name for name, value in self.secrets.items() if value == secret]
        variable = known[0] if known else self._variable(key)
        self.secrets[variable] = secret
        return f"<secret:{variable}>"

    def _variable(self, key: str) -> str:
        """`a.env_vars.WANDB_API_KEY` -> `WANDB_API_KEY`; `trainer.api_key` -> `TRAINER_API_KEY`."""
        parts = key.lstrip("+~").split(".")
        count = 1 if re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", parts[-1]) else 2
        while True:
            name = re.sub(r"\W", "_", "_".join(parts[-count:]), flags=re.ASCII).upper()
            name = name if name[:1].isalpha() else f"S_{name}"
            if name not in self.secrets or count >= len(parts):
                return name
            count += 1

    def _require_no_secret(self, place: str, value: Any) -> None:
        """Raise for a secret in a part of a recipe that is written into files unchanged."""
        if isinstance(value, Mapping):
            for name, item in value.items():
                if is_secret_value(str(name), item) and place.endswith("env"):
                    raise UsageError(
                        f"{place}.{name}: a secret would be written into files. Leave it out of "
                        "the recipe, and export it where verl runs."
                    )
                self._require_no_secret(f"{place}.{name}", item)
        elif isinstance(value, list):
            for item in value:
                self._require_no_secret(place, item)
        elif isinstance(value, str) and self._is_secret(place, value):
            raise UsageError(
                f"{place}: it contains a secret, which would be written into files. Leave the secret out, "
                "and export it where verl runs."
            )


def _text_without_quotes(value: str) -> str:
    """Return the text of an override's value, without Hydra's quotes."""
    return str(parse_value(value)) if value[:1] in {"'", '"'} else value
