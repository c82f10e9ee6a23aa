"""Find secrets by name, by shape and by value, and keep them out of everything that is written.

A name is that of a variable, a dotted key, an option or a header. A value under the name of a
secret is hidden wherever it appears again, under any name: `Redactor` remembers it.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

#: The text in place of a secret.
HIDDEN = "***"

#: A shorter value, in characters, is hidden only under its own name: it may be part of other words.
MIN_REPEATED_CHARS = 6


#: Words of names, by what they say about the value.
_SECRET, _METADATA, _TOKENIZER, _ACCESS, _DATA = (
    frozenset(words.split())
    for words in (
        # Marks of a secret wherever they stand in a name, unless it ends in a word of the next list.
        """password passwd passphrase passcode secret secrets credential credentials authorization
        cookie cookies apikey apikeys accesskey secretkey privatekey jwt webhook""",
        # Names that end in these say where a secret is or how it is used.
        """path paths file files dir folder env name names mode type policy length len count size id
        ids required enabled timeout manager backend class field fields user host port""",
        # Before `token` or `tokens` in the sense of a tokenizer: `max_tokens`, `pad_token`.
        """added all answer assistant audio avg batched begin bos by cached chunk class cls
        completion context continuous count current decode draft dropped end embed eos every
        expert extra first from generated global image img in input kv last local long loss mask
        max mean media min model moe n new next num number of out output pad padding per prefill
        prompt reasoning response sep seq sequence short source special speculative start stop sum
        target text think thinking to tool total unk unused use valid video vision vocab with""",
        # Before `key` or `keys`: these mark a secret; in capitals all others but the next list do.
        """access account anthropic api ark auth aws azure client comet dashscope deepseek encryption
        gemini google groq hf huggingface langfuse master mistral mlflow modelscope openai
        openrouter private secret service session signing ssh subscription swanlab together wandb
        webhook zhipu""",
        """answer cache column data file foreign gold group id image index input label map messages
        metric output parquet partition primary problem prompt public question response reward row
        sort source target text tool video""",
    )
)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

#: Values that are empty, a placeholder, or a reference to the place of a secret.
_NOT_SECRET = re.compile(
    r"\s*|\*+|\.\.\.|<[^<>]*>|\$\{[^{}]*\}|\$\w+|\$\([^()]*\)|(?i:none|null|true|false|empty|dummy|auto)"
)
_NUMBER = re.compile(r"[\d.,eE+-]{1,12}")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.\-]+){2,}/?|~/[\w.\-]+")

_SHAPES = re.compile(
    r"""(?:(?<=-----)|(?<![A-Za-z0-9_-]))(?:
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
_BEARER = re.compile(r"\bBearer\s+([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)

#: What is before the host of a URL: `ssh://git@host` has no secret, `http://token@host` may have one.
_USER = r"[^\s/?#'\"<>\\:]"
_USERINFO = re.compile(
    rf"\b(?:(?i:http)[a-z0-9+.-]{{0,27}}://|[A-Za-z][A-Za-z0-9+.-]{{0,30}}://(?={_USER}*:(?:{_USER}|:)*@))"
    rf"((?:{_USER}|:)+)@"
)

#: A key or signature in the query of a URL; elsewhere these names say nothing.
_QUERY = re.compile(
    r"[?&](?:key|sig|signature|token|auth|code)=([^\s&#'\"<>\\]{6,2000})", re.IGNORECASE
)

#: What a secret looks like, and its group in the match.
_SHAPED = ((_PEM, 0), (_BEARER, 1), (_QUERY, 1), (_SHAPES, 0), (_USERINFO, 1))

#: `NAME=value`, `--name value`, `"name": "value"`, `NAME: value` in capitals, `X-Api-Key: value`, `{name: value}`.
_VALUE = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\$\{[^{}\n]*\}|\$\([^()\n]*\)|<[^<>\s]*>|[^\s"',;&{}\[\]()<>|]+)"""
_NAMED = re.compile(
    rf"""(?x)
      (?P<quote>["'])([\w.\-/]{{2,120}})(?P=quote)\s*:\s*({_VALUE})
    | (?<![\w.\-])(--?[A-Za-z][\w\-]{{1,80}})(?:=|[ \t]+)((?!-){_VALUE})
    | (?<![\w])([+~]{{0,2}}[A-Za-z_][\w.\-/@]{{1,200}})=({_VALUE})
    | (?<![\w.\-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?i:authorization|[\w]+(?:-[\w]+)+))
      :[ \t]*((?:(?i:bearer|basic|token)[ \t]+)?{_VALUE})
    | (?<=[{{,])[ ]?([A-Za-z_][\w.\-]*):[ \t]*({_VALUE})
    """
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable, key, option or header of this name holds a secret.

    Each part of a dotted key counts, so everything below `secrets.` is secret. `max_tokens`,
    `pad_token`, `prompt_key` and `AUTH_TOKEN_PATH` are not names of secrets.
    """
    return any(map(_is_secret_part, re.split(r"[./]", name.lstrip("+~-"))))


def _is_secret_part(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-3:] == ["access", "key", "id"] or words[-2:] == ["connection", "string"]:
        return True
    if not words or words[-1] in _METADATA:
        return False
    if _SECRET.intersection(words):
        return True
    *before, last = words
    if last == "token" or (last == "tokens" and before):
        return not _TOKENIZER.intersection(before)
    if not before:  # `key`, `tokens`, `auth` and $PWD say nothing
        return False
    if last == "auth":  # BASIC_AUTH; RAY_AUTH is a switch
        return before[-1] in {"basic", "http", "https", "proxy"}
    if last in {"key", "keys"}:
        others = name.isupper() and not _DATA.intersection(before)
        return others or bool(_ACCESS.intersection(before))
    return last in {"pat", "pwd"} or (last in {"ak", "sk"} and name.isupper())


def is_secret_value(name: str, value: Any) -> bool:
    """Return whether a value is a secret by its name, and not a number of tokens or a reference.

    `${WANDB_API_KEY}` and `$(cat key)` say where the secret is; `EMPTY` and `None` are placeholders.
    """
    if not isinstance(value, str) or _NOT_SECRET.fullmatch(value) or not is_secret_name(name):
        return False
    return not (name.lower().endswith("tokens") and _NUMBER.fullmatch(value))


class Redactor:
    """Hides secrets in texts and trees, and remembers them, so that they stay hidden elsewhere."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, value: str) -> None:
        """Hide a value from now on, also as it is in JSON, in a URL and without its scheme."""
        scheme = re.fullmatch(r"(?i:bearer|basic|token)\s+(\S+)", value)
        plain = (scheme[1] if scheme else value).strip().strip("\"'")
        is_common = any(kind.fullmatch(plain) for kind in (_NOT_SECRET, _PATH, _NUMBER))
        if len(plain) >= MIN_REPEATED_CHARS and not is_common:
            self._values |= {plain, json.dumps(plain)[1:-1], unquote(plain)}
            self._pattern = None

    def learn(self, value: Any, name: str = "") -> "Redactor":
        """Remember every secret in a tree, or in a text with `NAME=value` and similar forms; return itself."""
        if isinstance(value, Mapping):
            for key, item in value.items():
                self.learn(item, f"{name}.{key}" if name else str(key))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.learn(item, name)
        elif isinstance(value, str):
            if name and is_secret_value(name, value):
                self.remember(value)
            for match in _USERINFO.finditer(value):
                self.remember(match[1].partition(":")[2] or match[1])
            for start, end in _secret_spans(value):
                self.remember(value[start:end])
        return self

    def text(self, text: str) -> str:
        """Return a text with its secrets hidden; it adds nothing to what is remembered."""
        text, pieces, last = self.data(text), list[str](), 0
        for start, end in sorted(_secret_spans(text)):
            if start >= last:
                pieces += [text[last:start], HIDDEN]
            last = max(last, end)
        return "".join([*pieces, text[last:]])

    def data(self, text: str) -> str:
        """Return the text with known secrets hidden; all else stays, whatever it looks like."""
        if self._pattern is None and self._values:
            longest = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest)))
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def tree(self, value: Any, name: str = "") -> Any:
        """Return a tree of mappings, lists and texts with its secrets hidden; other values unchanged."""
        return self.learn(value, name)._hidden(value, name)  # noqa: SLF001 - its own

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
        if not isinstance(value, str):
            return value
        return HIDDEN if name and is_secret_value(name, value) else self.text(value)


def redactor_of(variables: Mapping[str, str], texts: Iterable[str] = ()) -> Redactor:
    """Return a redactor that knows the secrets of an environment and of a command line."""
    redactor = Redactor()
    for name, value in variables.items():
        if is_secret_value(name, value):
            redactor.remember(value)
        else:
            redactor.learn([match[0] for match in _USERINFO.finditer(value)])
    return redactor.learn(list(texts))


@cache
def process_redactor() -> Redactor:
    """Return what hides secrets in messages and pages: those of this process's environment and arguments."""
    redactor = redactor_of(os.environ, sys.argv[1:])
    for before, argument in pairwise(("", *sys.argv[1:])):
        if argument.startswith("{"):
            with suppress(ValueError):
                redactor.learn(json.loads(argument))
        # As a whole: in text, a value would end at its first blank or quote.
        name, _, value = argument.partition("=")
        if is_secret_value(name, value):
            redactor.remember(value)
        if before.startswith("-") and is_secret_value(before, argument):
            redactor.remember(argument)
    return redactor


def variable_of(name: str, value: Any) -> str:
    """Return the environment variable to write in place of an option's secret; "" if it is none.

    It is a variable that has this value here, or the option's name in capitals.
    """
    is_secret = is_secret_value(name, value) or (
        isinstance(value, str) and process_redactor().text(value) != value
    )
    variables = (variable for variable, other in os.environ.items() if other == value)
    return next(variables, re.sub(r"\W", "_", name).upper()) if is_secret else ""


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where secrets stand in a text, by their shape or by the name before them."""
    for pattern, group in _SHAPED:
        yield from (match.span(group) for match in pattern.finditer(text))
    for match in _NAMED.finditer(text):
        group = match.lastindex or 0  # the value, after its name
        (start, end), value = match.span(group), match[group]
        if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
            start, end = start + 1, end - 1
        if is_secret_value(match[group - 1], text[start:end]):
            yield start, end
