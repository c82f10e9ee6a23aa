"""Secrets of a run: the plan has their variables' names, the environment has their values.

`train -- trainer.api_key=...` gives a secret. In the plan, and so in scripts, manifests and all that
is printed, stands `<secret:TRAINER_API_KEY>`. What runs here gets the value; a generated script
takes it from the environment in which it runs.
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

#: The mark as Hydra is given it, which is the whole value of a setting.
_QUOTED_MARK = re.compile(rf"'{MARK.pattern}'")

#: Parts of a recipe that become verl's settings, which may hold a secret.
_SETTINGS = (("verl",), ("reward", "options"))


def shell_word(value: str) -> str:
    """A value as one word of a POSIX shell: every value of a script goes through here.

    Secrets become variables of the shell that runs the script. The word must not stand inside
    quotes or `${...}`: there it would mean something else.
    """
    if not MARK.search(value):
        return shlex.quote(value)
    pieces = MARK.split(value)  # text, name, text, name, ...
    return "".join(
        f'"${{{piece}:?is a secret, export it}}"' if i % 2 else shlex.quote(piece) if piece else ""
        for i, piece in enumerate(pieces)
    )


def variables_of(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The variables whose secrets a command needs, each once."""
    return tuple(dict.fromkeys(MARK.findall("\n".join(arguments))))


def conceal(
    tree: Mapping[str, Any], overrides: list[str]
) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """A recipe and overrides with marks instead of secrets, and the secrets by their variables.

    Args:
        tree: the recipe as YAML has it.
        overrides: of the command line, as `key=value`.

    Raises:
        UsageError: a secret stands where no variable can replace it.
    """
    redactor = redactor_of(os.environ, overrides).learn(tree)
    concealer = _Concealer(redactor)
    shown = [concealer.override(text) for text in overrides]
    return concealer.recipe(tree), shown, concealer.secrets


def reveal(text: str, secrets: Mapping[str, str]) -> str:
    """An argument of verl's, or another value, with its secrets.

    Raises:
        UsageError: one is neither in `secrets` nor in the environment.
    """

    def value(name: str) -> str:
        found = secrets.get(name) or os.environ.get(name)
        if not found:
            raise UsageError(f"{name} is not set: it is a secret, and in no file; export it.")
        return found

    text = _QUOTED_MARK.sub(lambda match: quote_text(value(match[1])), text)
    return MARK.sub(lambda match: value(match[1]), text)


class _Concealer:
    """Puts marks in place of secrets and keeps these."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor, self.secrets = redactor, dict[str, str]()

    def override(self, text: str) -> str:
        """An override of the command line."""
        key, equals, value = text.partition("=")
        if not self._is_secret(key, value):
            return text
        return f"{key}{equals}{self._mark(key, str(parse_value(value.strip())), value.strip())}"

    def recipe(self, tree: Mapping[str, Any], place: str = "") -> dict[str, Any]:
        """A recipe, or a variant of a sweep."""
        shown = dict(tree)
        for path in _SETTINGS:
            self._settings(shown, path)
        for name, value in shown.items():
            if name == "sweep" and isinstance(value, Mapping):
                shown[name] = {
                    variant: self.recipe(part, f"sweep.{variant}.")
                    if isinstance(part, Mapping)
                    else part
                    for variant, part in value.items()
                }
            elif name != "verl":
                self._refuse(f"{place}{name}", value)
        return shown

    def _settings(self, tree: dict[str, Any], path: tuple[str, ...]) -> None:
        *above, last = path
        for name in above:
            if not isinstance(tree.get(name), Mapping):
                return
            tree[name] = dict(tree[name])
            tree = tree[name]
        if isinstance(tree.get(last), Mapping):
            tree[last] = self._marked(tree[last], "")

    def _marked(self, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {k: self._marked(v, f"{key}.{k}" if key else str(k)) for k, v in value.items()}
        if isinstance(value, str) and self._is_secret(key, value):
            return self._mark(key, value, "")
        if isinstance(value, list) and self.redactor.tree(value, key) != value:
            raise UsageError(
                f"{key}: a list with a secret in it would be written into files; leave the secret "
                "out, and export it where verl runs."
            )
        return value

    def _is_secret(self, key: str, value: str) -> bool:
        if MARK.search(value):
            return False
        return is_secret_value(key, parsed_text(value)) or self.redactor.text(value) != value

    def _mark(self, key: str, secret: str, raw: str) -> str:
        if raw[:1] in {"{", "["}:
            raise UsageError(
                f"{key}: a secret inside a mapping or a list would be written into files; give it "
                f"as {key}.NAME=VALUE."
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

    def _refuse(self, place: str, value: Any) -> None:
        """Raise for a secret in a part of a recipe that files are made of as it is."""
        if isinstance(value, Mapping):
            for name, item in value.items():
                if is_secret_value(str(name), item) and place.endswith("env"):
                    raise UsageError(
                        f"{place}.{name}: a secret would be written into files; leave it out of "
                        "the recipe and export it where verl runs."
                    )
                self._refuse(f"{place}.{name}", item)
        elif isinstance(value, list):
            for item in value:
                self._refuse(place, item)
        elif isinstance(value, str) and self._is_secret(place, value):
            raise UsageError(
                f"{place}: it has a secret in it, which would be written into files; leave that "
                "out, and export it where verl runs."
            )


def parsed_text(value: str) -> str:
    """The text of an override's right side, without Hydra's quotes."""
    return str(parse_value(value)) if value[:1] in {"'", '"'} else value
