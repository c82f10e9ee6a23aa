"""Secrets of a run: the plan has the names of variables, the environment has their values.

`train -- trainer.api_key=...` passes a secret. The plan, and so every script, manifest and message,
has `<secret:TRAINER_API_KEY>` in its place. A run on this machine gets the value; a generated
script reads it from its environment.
"""

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

#: Parts of a recipe, and of the variants of its sweep, that become verl's settings: marks may be there.
_SETTINGS = re.compile(r"(?:sweep\..+?\.)?(?:verl|reward\.options)(?:\.(.*))?", re.DOTALL)


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


def reveal_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Replace the marks in an argument of verl, or in another value, by the secrets."""

    def value(name: str) -> str:
        secret = secrets.get(name) or os.environ.get(name)
        if not secret:
            raise UsageError(
                f"{name} is not set. Export it: it is a secret, which rewardkit writes into no file."
            )
        return secret

    text = _QUOTED_MARK.sub(lambda match: quote_text(value(match[1])), text)
    return MARK.sub(lambda match: value(match[1]), text)


def reveal_options(options: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return a scorer's options with the values of secrets, as verl passes them."""
    return {
        name: reveal_secrets(value, secrets) if isinstance(value, str) else value
        for name, value in options.items()
    }


def conceal_secrets(
    tree: Mapping[str, Any], overrides: list[str]
) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """Return a recipe and overrides with marks for their secrets, and the secrets by their variables."""
    concealer = _Concealer(redactor_of(os.environ, overrides).learn(tree))
    marked = [concealer.override(text) for text in overrides]
    return concealer.tree(tree, ""), marked, concealer.secrets


class _Concealer:
    def __init__(self, redactor: Redactor) -> None:
        self.redactor, self.secrets = redactor, dict[str, str]()

    def override(self, text: str) -> str:
        """Return an override of the command line with a mark for its secret."""
        key, equals, value = text.partition("=")
        if not self._is_secret(key, value):
            return text
        value = value.strip()
        if value[:1] in {"{", "["}:
            raise UsageError(
                f"{key}: a secret in a mapping or a list would be written into files. Pass it as {key}.NAME=VALUE."
            )
        return f"{key}{equals}{self._mark(key, str(parse_value(value)))}"

    def tree(self, value: Any, path: str) -> Any:
        """Return a part of a recipe, whose dotted name there is `path`, with marks for its secrets."""
        if isinstance(value, Mapping):
            below = f"{path}." if path else ""
            return {name: self.tree(item, f"{below}{name}") for name, item in value.items()}
        settings = _SETTINGS.fullmatch(path)
        if isinstance(value, list) and not settings:
            return [self.tree(item, path) for item in value]
        key = (settings[1] or "") if settings else path
        if isinstance(value, list) and self.redactor.tree(value, key or path) != value:
            raise UsageError(
                f"{key}: a list with a secret would be written into files. Leave the secret out, and "
                "export it where verl runs."
            )
        if not isinstance(value, str) or not self._is_secret(key, value):
            return value
        if settings:
            return self._mark(key, value)
        what = "a secret" if is_secret_value(path, value) else "it contains a secret, which"
        raise UsageError(
            f"{path}: {what} would be written into files. Leave the secret out, and export it where verl runs."
        )

    def _is_secret(self, key: str, value: str) -> bool:
        if MARK.search(value):
            return False
        plain = str(parse_value(value)) if value[:1] in {"'", '"'} else value
        return is_secret_value(key, plain) or self.redactor.text(value) != value

    def _mark(self, key: str, secret: str) -> str:
        same = (name for name, value in self.secrets.items() if value == secret)
        variable = next(same, None) or self._variable(key)
        self.secrets[variable] = secret
        return f"<secret:{variable}>"

    def _variable(self, key: str) -> str:
        """`a.env_vars.WANDB_API_KEY` -> `WANDB_API_KEY`; `trainer.api_key` -> `TRAINER_API_KEY`."""
        *sections, last = key.lstrip("+~").split(".")
        if re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", last) and last not in self.secrets:
            return last
        name = re.sub(r"\W", "_", "_".join([*sections, last]), flags=re.ASCII).upper()
        return name if name[:1].isalpha() else f"S_{name}"
