"""The words of a shell script, without a shell: quotes, expansions, continued lines, redirections.

Nothing is expanded here. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

#: Different problems that are kept, and lines of each.
MAX_PROBLEMS = 1_000

_NAME = r"[A-Za-z_]\w*"

_TOKEN = re.compile(
    r"""(?P<joined>\\\n)
    | (?P<broken>\\[^\S\n]+(?:\#[^\n]*)?(?:\n|\Z))
    | (?P<newline>\n)
    | (?P<blank>[^\S\n]+)
    | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
    | (?P<single>'[^']*'?)
    | (?P<double>")
    | (?P<dollar>[$`])
    | (?P<redirect>\d*(?:<<<|<<-?|>>|<>|>\||[<>])(?:&[\d-]+|&)?|&>>?)
    | (?P<operator>&&|\|\||;;|\|&|[;&|()])
    | (?P<escape>\\.?)
    | (?P<plain>[^\s\\'"$`;&|<>()\#]+|\#)""",
    re.VERBOSE,
)
_INSIDE = re.compile(
    r"""(?P<end>")|(?P<escape>\\[$`"\\\n])|(?P<dollar>[$`])|(?P<plain>[^"$`\\]+|\\)"""
)
_BRACKETS = re.compile(r"""'[^']*'|"[^"\\]*(?:\\.[^"\\]*)*"|\\.|[(){}]""", re.DOTALL)
_VARIABLE = re.compile(rf"\$({_NAME}|\d|[@*#?$!-])", re.ASCII)

_LOST = "bash ends the command here, and the settings below it are not passed."


class Problem(NamedTuple):
    """Something about a script that its reader should know.

    Attributes:
        lines: of the script, from 1.
        text: what is the case.
        breaks: whether bash or verl does not do what the script means.
    """

    lines: tuple[int, ...]
    text: str
    breaks: bool


class Problems:
    """Problems by their text, with the lines they were met on."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, bool], list[int]] = {}

    def tell(self, line: int, text: str, *, breaks: bool = True) -> None:
        """Note a problem on a line; the same text on another line adds the line."""
        if len(self._found) < MAX_PROBLEMS or (text, breaks) in self._found:
            lines = self._found.setdefault((text, breaks), [])
            if len(lines) < MAX_PROBLEMS and line not in lines[-1:]:
                lines.append(line)

    def listed(self) -> tuple[Problem, ...]:
        """All of them by their first line."""
        found = [Problem(tuple(lines), *key) for key, lines in self._found.items()]
        return tuple(sorted(found))


class Part(NamedTuple):
    """A piece of a word.

    Attributes:
        kind: `text`, `variable` (text is what stands in the braces), `arithmetic` or `command`.
        text: without quotes, `$` and brackets.
        raw: as it is written.
        quoted: whether the shell keeps its blanks.
    """

    kind: str
    text: str
    raw: str
    quoted: bool = False


class Word(NamedTuple):
    """A word, or an array's name with its items."""

    line: int
    parts: tuple[Part, ...]
    items: tuple[Word, ...] | None = None

    @property
    def start(self) -> str:
        """The plain text a word starts with, "" if it starts with a quote or an expansion."""
        first = self.parts[0]
        return first.text if first.kind == "text" and not first.quoted else ""


def commands(text: str, problems: Problems) -> Iterator[list[Word]]:
    """The simple commands of a script, without redirections.

    Args:
        text: of the script, with Unix line ends.
        problems: what is wrong with the text is added.
    """
    words: list[Word] = []
    array: list[Word] | None = None
    skip = False
    for piece in _tokens(text, problems):
        if isinstance(piece, Word):
            if not skip:
                (words if array is None else array).append(piece)
            skip = False
        elif array is not None:
            if piece == ")":
                words[-1] = words[-1]._replace(items=tuple(array))
                array = None
        elif piece == "=(" and words:
            array = []
        elif "<" in piece or ">" in piece:
            skip = not re.search(r"&[\d-]", piece)
        else:
            if words:
                yield words
            words, skip = [], False
    if words:
        yield words


def parts_inside(text: str) -> tuple[Part, ...]:
    """The parts of a text as between double quotes, one pair of quotes around it taken off.

    A text with more quotes than these is one part that is not known.
    """
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    if '"' in text:
        return (Part("command", text, text),)
    return tuple(_double(text + '"', 0, 0, Problems())[0])


def _tokens(text: str, problems: Problems) -> Iterator[Word | str]:
    """Words, and operators as text; `=(` begins an array."""
    ends = [match.start() for match in re.finditer("\n", text)]
    parts: list[Part] = []
    begun = pos = 0
    heredoc = ""
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None:  # the pattern takes any character; this is for the type checker
            break
        kind, raw, start, pos = str(match.lastgroup), match[0], pos, match.end()
        line = bisect_right(ends, start - 1) + 1
        begun = begun if parts else line
        if kind in {"single", "escape", "plain", "double", "dollar"}:
            found, pos = _pieces(kind, match, bool(parts), line, problems)
            parts += found
            continue
        if parts:
            yield Word(begun, tuple(parts))
            heredoc = "".join(part.text for part in parts) if heredoc == "<<" else heredoc
        _judge(
            kind,
            raw,
            glued=bool(parts) and not text[pos : pos + 1].isspace(),
            tell=(line, problems),
        )
        if kind == "newline" and heredoc not in {"", "<<"}:
            pos, heredoc = _after(text, pos, heredoc), ""
        if kind in {"newline", "redirect", "operator"}:
            heredoc = "<<" if raw.rstrip("-") == "<<" else heredoc
            yield "=(" if raw == "(" and _names(parts) else raw
        parts = []
    if parts:
        yield Word(begun, tuple(parts))


def _judge(kind: str, raw: str, *, glued: bool, tell: tuple[int, Problems]) -> None:
    line, problems = tell
    if kind == "broken":
        what = "a comment" if "#" in raw else "blanks"
        problems.tell(line, f"{what} after the backslash: {_LOST}")
    elif kind == "joined" and glued:
        problems.tell(line, "no blank before the backslash: bash joins the line with the next one.")


def _names(parts: list[Part]) -> bool:
    """Whether a word is the `A=` of an array."""
    return len(parts) == 1 and bool(re.fullmatch(rf"{_NAME}\+?=", parts[0].text, re.ASCII))


def _after(text: str, pos: int, delimiter: str) -> int:
    """The place after a here-document."""
    end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(text, pos)
    return end.end() if end else len(text)


def _pieces(
    kind: str, match: re.Match[str], inside: bool, line: int, problems: Problems
) -> tuple[list[Part], int]:
    """The parts that begin at a match, and the place after them."""
    raw, text = match[0], match.string
    if kind == "double":
        parts, end = _double(text, match.end(), line, problems)
        return parts or [Part("text", "", '""', quoted=True)], end
    if kind == "dollar":
        part, end = _dollar(text, match.start(), line, problems)
        return [part], end
    if kind == "plain":
        return [Part("text", raw, raw)], match.end()
    if kind == "escape":
        if raw[1:].isspace() and not inside:
            problems.tell(line, "a backslash inside a line: the line ends were lost in copying.")
            return [], match.end()
        return [Part("text", raw[1:], raw, quoted=True)], match.end()
    if len(raw) < 2 or raw[-1] != "'":
        problems.tell(line, "a quote that is never closed.")
    return [Part("text", raw.strip("'"), raw, quoted=True)], match.end()


def _double(text: str, pos: int, line: int, problems: Problems) -> tuple[list[Part], int]:
    """The parts up to the closing quote, and the place after it."""
    parts: list[Part] = []
    while match := _INSIDE.match(text, pos):
        raw, pos = match[0], match.end()
        if match.lastgroup == "end":
            return parts, pos
        if match.lastgroup == "dollar":
            part, pos = _dollar(text, match.start(), line, problems)
            parts.append(part._replace(quoted=True))
        elif raw != "\\\n":
            plain = raw[1:] if match.lastgroup == "escape" else raw
            parts.append(Part("text", plain, raw, quoted=True))
    problems.tell(line, "a quote that is never closed.")
    return parts, pos


def _dollar(text: str, pos: int, line: int, problems: Problems) -> tuple[Part, int]:
    """What starts at a `$` or a backtick, and the place after it."""
    opening = text[pos + 1 : pos + 2]
    if text[pos] == "`" or opening in {"(", "{"}:
        end = text.find("`", pos + 1) + 1 if text[pos] == "`" else _closing(text, pos + 1)
        if not end:
            problems.tell(line, f"a {text[pos : pos + 2]} that is never closed.")
            return Part("command", text[pos:], text[pos:]), len(text)
        return _bracketed(text[pos:end]), end
    match = _VARIABLE.match(text, pos)
    if match is None:
        return Part("text", "$", "$"), pos + 1
    return Part("variable", match[1], match[0]), match.end()


def _bracketed(raw: str) -> Part:
    if raw.startswith("${"):
        return Part("variable", raw[2:-1], raw)
    if raw.startswith("$((") and raw.endswith("))"):
        return Part("arithmetic", raw[3:-2], raw)
    return Part("command", raw, raw)


def _closing(text: str, pos: int) -> int:
    """The place after the bracket that closes the one at `pos`; 0 if there is none."""
    opening = text[pos]
    closing = {"(": ")", "{": "}"}[opening]
    depth = 0
    for match in _BRACKETS.finditer(text, pos):
        depth += (match[0] == opening) - (match[0] == closing)
        if not depth:
            return match.end()
    return 0
