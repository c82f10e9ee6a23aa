"""Secrets are found by name, by shape and by value, and are in nothing that rewardkit writes.

A name is that of a variable, a dotted key, an option or a header. A value under such a name is a
secret wherever it appears again, under whatever name: `Redactor` remembers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

#: What stands where a secret was.
HIDDEN = "***"

#: A value shorter than this is hidden under its own name only: it may be part of other words.
MIN_REPEATED = 6


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that make a name a secret's wherever they stand in it, unless it ends as one of `_ABOUT`.
_ANYWHERE = _words(
    """
    password passwd passphrase passcode secret secrets credential credentials authorization
    cookie cookies apikey apikeys accesskey secretkey privatekey jwt webhook
    """
)
#: Names that end so say where a secret is or how it is used, and hold none.
_ABOUT = _words(
    """
    path paths file files dir folder env name names mode type policy length len count size id
    ids required enabled timeout manager backend class field fields user host port
    """
)
#: `max_tokens`, `pad_token`: words before `token` or `tokens` in the sense of a tokenizer.
_OF_TOKENIZERS = _words(
    """
    added all answer assistant audio avg batched begin bos by cached chunk class cls
    completion context continuous count current decode draft dropped end embed eos every
    expert extra first from generated global image img in input kv last local long loss mask
    max mean media min model moe n new next num number of out output pad padding per prefill
    prompt reasoning response sep seq sequence short source special speculative start stop sum
    target text think thinking to tool total unk unused use valid video vision vocab with
    """
)
#: Words before `key` or `keys` that make it a secret; in capitals all others do but `_OF_DATA`.
_OF_ACCESS = _words(
    """
    access account anthropic api ark auth aws azure client comet dashscope deepseek encryption
    gemini google groq hf huggingface langfuse master mistral mlflow modelscope openai
    openrouter private secret service session signing ssh subscription swanlab together wandb
    webhook zhipu
    """
)
_OF_DATA = _words(
    """
    answer cache column data file foreign gold group id image index input label map messages
    metric output parquet partition primary problem prompt public question response reward row
    sort source target text tool video
    """
)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SEPARATORS = re.compile(r"[./]")

#: What tells the secret's place instead of the secret, or is none.
_NO_SECRET = re.compile(
    r"\s*|\*+|\.\.\.|<[^<>]*>|\$\{[^{}]*\}|\$\w+|\$\([^()]*\)|(?i:none|null|true|false|empty|dummy|auto)"
)
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.\-]+){2,}/?|~/[\w.\-]+")

_SHAPES = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
      sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,} | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}
    | hf_[A-Za-z0-9]{16,} | ghp_[A-Za-z0-9]{16,} | gh[ousr]_[A-Za-z0-9]{16,} | github_pat_\w{20,}
    | glpat-[\w-]{16,} | (?:AKIA|ASIA)[0-9A-Z]{16} | xox[abeoprs]-[A-Za-z0-9-]{10,}
    | AIza[\w-]{30,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,} | nvapi-[\w-]{16,}
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*
    )""",
    re.VERBOSE,
)
_PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_BEARER = re.compile(r"(\bBearer\s+)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_USERINFO = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)([^\s/?#'\"<>\\]+)@")

#: `NAME=value`, `--name value`, `"name": "value"`, `NAME: value` in capitals, `X-Api-Key: value`, `{name: value}`.
_VALUE = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\$\{[^{}\n]*\}|\$\([^()\n]*\)|<[^<>\s]*>|[^\s"',;&{}\[\]()<>|]+)"""
_NAMED = re.compile(
    rf"""(?x)
      (?P<quote>["'])(?P<quoted>[\w.\-/]{{2,120}})(?P=quote)(?P<a>\s*:\s*)(?P<v1>{_VALUE})
    | (?<![\w.\-])(?P<flag>--?[A-Za-z][\w\-]{{1,80}})(?P<b>=|[ \t]+)(?P<v2>(?!-){_VALUE})
    | (?<![\w])(?P<name>[+~]{{0,2}}[A-Za-z_][\w.\-/@]{{1,200}})(?P<c>=)(?P<v3>{_VALUE})
    | (?<![\w.\-])(?P<header>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?i:authorization|[\w]+(?:-[\w]+)+))
      (?P<d>:[ \t]*)(?P<v4>(?:(?i:bearer|basic|token)[ \t]+)?{_VALUE})
    | (?<=[{{,])[ ]?(?P<inner>[A-Za-z_][\w.\-]*)(?P<e>:[ \t]*)(?P<v5>{_VALUE})
    """
)


def is_secret_name(name: str) -> bool:
    """Whether a variable, key, option or header of this name holds a secret.

    Each part of a dotted key is looked at: what stands below `secrets.` is one. `max_tokens`,
    `pad_token`, `prompt_key` and `AUTH_TOKEN_PATH` are none.
    """
    return any(_is_secret_part(part) for part in _SEPARATORS.split(name.lstrip("+~-")))


def _is_secret_part(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-3:] == ["access", "key", "id"] or words[-2:] == ["connection", "string"]:
        return True
    if not words or words[-1] in _ABOUT:
        return False
    if _ANYWHERE.intersection(words):
        return True
    *before, last = words
    if last == "token":
        return not _OF_TOKENIZERS.intersection(before)
    if not before:  # `key`, `tokens`, `auth` and $PWD say nothing
        return False
    if last == "tokens":
        return not _OF_TOKENIZERS.intersection(before)
    if last == "auth":  # BASIC_AUTH; RAY_AUTH is a switch
        return before[-1] in {"basic", "http", "https", "proxy"}
    if last in {"key", "keys"}:
        others = name.isupper() and not _OF_DATA.intersection(before)
        return others or bool(_OF_ACCESS.intersection(before))
    return last in {"pat", "pwd"} or (last in {"ak", "sk"} and name.isupper())


def is_secret_value(name: str, value: Any) -> bool:
    """Whether a value under a name is a secret: the name says so, and it is no number or reference.

    `${WANDB_API_KEY}` and `$(cat key)` say where the secret is; `EMPTY` and `None` are no secrets.
    """
    if not isinstance(value, str) or _NO_SECRET.fullmatch(value) or not is_secret_name(name):
        return False
    counts = re.search(r"(?i)tokens$", name) is not None
    return not (counts and re.fullmatch(r"[\d.,eE+-]{1,12}", value))


class Redactor:
    """Hides secrets in texts and trees, those it has seen before under whatever name."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, value: str) -> None:
        """Hide a value from now on, with what it is in JSON, in a URL and without its scheme."""
        scheme = re.fullmatch(r"(?i:bearer|basic|token)\s+(\S+)", value)
        plain = (scheme[1] if scheme else value).strip().strip("\"'")
        if len(plain) < MIN_REPEATED or _NO_SECRET.fullmatch(plain) or _PATH.fullmatch(plain):
            return
        self._values |= {plain, json.dumps(plain)[1:-1], unquote(plain)}
        self._pattern = None

    def learn(self, value: Any, name: str = "") -> Redactor:
        """Remember every secret of a tree or a text; itself, for a chain.

        Args:
            value: a mapping, a list, or text with `NAME=value` and the like in it.
            name: under which it stands.
        """
        if isinstance(value, Mapping):
            for key, item in value.items():
                self.learn(item, f"{name}.{key}" if name else str(key))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.learn(item, name)
        elif isinstance(value, str):
            if name and is_secret_value(name, value):
                self.remember(value)
            self._learn_text(value)
        return self

    def _learn_text(self, text: str) -> None:
        for match in _USERINFO.finditer(text):
            user, colon, password = match[2].partition(":")
            self.remember(password if colon else user)
        for match in _NAMED.finditer(text):
            name, value = _parts(match)
            if is_secret_value(name, value):
                self.remember(value)
        for pattern in (_SHAPES, _PEM):
            for match in pattern.finditer(text):
                self.remember(match[0])
        for match in _BEARER.finditer(text):
            self.remember(match[2])

    def text(self, text: str) -> str:
        """The text without secrets; those in it are remembered."""
        self._learn_text(text)
        if self._values:
            text = self._known().sub(HIDDEN, text)
        text = _PEM.sub(HIDDEN, text)
        text = _USERINFO.sub(_hide_userinfo, text)
        text = _SHAPES.sub(HIDDEN, _BEARER.sub(rf"\g<1>{HIDDEN}", text))
        return _NAMED.sub(_hide_named, text)

    def tree(self, value: Any, name: str = "") -> Any:
        """Mappings, lists and texts without secrets; all else as it is."""
        self.learn(value, name)
        return self._hidden(value, name)

    def _hidden(self, value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self._hidden(
                    item, f"{name}.{key}" if name else str(key)
                )
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self._hidden(item, name) for item in value]
        if isinstance(value, str):
            return HIDDEN if name and is_secret_value(name, value) else self.text(value)
        return value

    def _known(self) -> re.Pattern[str]:
        if self._pattern is None:
            longest = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest)))
        return self._pattern


def secrets_of(variables: Mapping[str, str], texts: Iterable[str] = ()) -> Redactor:
    """A redactor that knows the secrets of an environment and of a command line's arguments."""
    redactor = Redactor()
    for name, value in variables.items():
        if is_secret_value(name, value):
            redactor.remember(value)
        else:
            for match in _USERINFO.finditer(value):
                redactor.learn(match[0])
    return redactor.learn(list(texts))


def _parts(match: re.Match[str]) -> tuple[str, str]:
    """Name and value of a match of `_NAMED`, the value without quotes."""
    name = match["quoted"] or match["flag"] or match["name"] or match["header"] or match["inner"]
    value = match["v1"] or match["v2"] or match["v3"] or match["v4"] or match["v5"]
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return name, value[1:-1] if quoted else value


def _hide_named(match: re.Match[str]) -> str:
    name, value = _parts(match)
    if not is_secret_value(name, value):
        return match[0]
    head, found, tail = match[0].rpartition(value)
    return f"{head}{HIDDEN}{tail}" if found else match[0]


def _hide_userinfo(match: re.Match[str]) -> str:
    """`ssh://git@host` has no secret; `http://token@host` may."""
    named_only = ":" not in match[2] and not match[1].lower().startswith("http")
    return match[0] if named_only else f"{match[1]}{HIDDEN}@"
