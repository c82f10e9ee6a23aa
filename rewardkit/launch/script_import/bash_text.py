"""The text of a script as bash gets it: no files, and what is not known leaves a mark.

Redirections to files go to /dev/null, and a file that is read is one mark. `$NAME` is a mark where
nothing sets it, `[[`, `((` and `case` ask what decides them, and commands with a path are named to
`__x` of `stand_ins.bash`. Bash still reads the result in its restricted mode: what this module reads
wrongly can give a wrong word, but never a command that runs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rewardkit.errors import DataError

#: Levels of substitutions in substitutions, and characters between `((` and `))`.
MAX_DEPTH = 40
MAX_ARITHMETIC = 4_000

#: Variables that differ from run to run, and positional parameters, of which none is set.
_VOLATILE = frozenset("BASHPID EUID GROUPS PPID UID".split())

_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_PLAIN = re.compile(r"[^\s;&|()<>$`\"'\\#{}]+|[#{}]")
_REDIRECT = re.compile(r"(\d*|\{\w+\})(&>>?|<<<|<<-?|<>|>>|>\||>&|<&|[<>])[ \t]*")
_NAME = re.compile(r"[A-Za-z_]\w*|\d|[@*#?$!_-]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_KEYWORDS = frozenset("if then elif else while until do ! time { } fi done esac".split())


class Substitution(NamedTuple):
    """A `$(...)` of a script, its line, and the variable that it is the value of, or ""."""

    text: str
    line: int
    name: str


class BashText:
    """Rewrites pieces of one script; marks and substitutions are numbered over all of them.

    Args:
        token: the start of every mark, which no script has.
        forced: variables whose assignments are replaced, with the values they keep.
    """

    def __init__(self, token: str, forced: dict[str, str]) -> None:
        self.token, self.forced = token, forced
        self.substitutions: list[Substitution] = []
        self.unclosed: list[int] = []

    def rewrite(self, text: str, line: int = 1) -> str:
        """Return the text for bash; `line` is the number of its first line."""
        return _Reader(self, text.replace("BASH_SOURCE", "__SOURCE"), line).commands("")

    def mark(self, text: str, line: int, name: str = "") -> str:
        """Return a mark for what a script writes as `text`."""
        self.substitutions.append(Substitution(text[:400], line, name))
        return f"{self.token}{len(self.substitutions) - 1}_"


class _Reader:
    """Reads one text from its start to its end."""

    def __init__(self, script: BashText, text: str, line: int, depth: int = 0) -> None:
        self.script, self.text, self.first, self.depth = script, text, line, depth
        self.at, self.counted = 0, (0, line)
        self.documents: list[tuple[str, bool, bool]] = []
        # a name that the script takes back, or declares without a value, is known to be empty
        declared = re.findall(r"\b(?:unset|local|declare|typeset)\b([^\n;&|]*)", text)
        self.empty = {name for part in declared for name in _IDENTIFIER.findall(part)}

    @property
    def line(self) -> int:
        at, line = self.counted
        if self.at >= at:
            self.counted = self.at, line + self.text.count("\n", at, self.at)
        return self.counted[1]

    def looking_at(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def commands(self, end: str) -> str:  # noqa: C901, PLR0912, PLR0915 - one case for each sign of bash
        """Return the commands up to `end`, "" for the end of the text; `end` is passed over."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DataError(f"line {self.line}: nested more than {MAX_DEPTH} levels deep.")
        out: list[str] = []
        is_start, parens, cases = True, 0, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
                out.append(blank[0])
            elif char == "\n":
                self.at += 1
                out += ["\n", *self._here_documents()]
                is_start = True
            elif char == "#":
                self.at = self._find("\n")
            elif char == end and not parens and not cases:
                self.at += 1
                break
            elif is_start and self.looking_at("(("):
                out.append(self._arithmetic_command())
            elif match := self._redirection():
                out.append(self._redirected(match))
            elif char in ";&|()":
                self.at += 1
                out.append(char)
                parens += (char == "(") - (char == ")" and parens > 0)
                is_start = True
            elif is_start and self.looking_at("[[ "):
                out.append(self._condition())
            else:
                start, begun = self.at, self.line
                word = self.word()
                raw = self.text[start : self.at]
                if is_start and raw in {"case", "for", "select"}:
                    out.append(self._case(begun) if raw == "case" else self._for(raw, begun))
                    cases += raw == "case"
                    is_start = raw == "case"
                elif is_start and raw == "esac":
                    cases, is_start = max(0, cases - 1), False
                    out.append(word)
                elif is_start and _ASSIGNMENT.match(raw):
                    name = re.split(r"[\[+=]", raw)[0]
                    if raw.endswith("=") and self.looking_at("("):
                        word += self._array()
                    out.append(self._assigned(name, word))
                else:
                    is_path = (
                        is_start
                        and ("/" in raw or raw.startswith(("$", '"', "'", "`", "~")))
                        and raw not in "'\""
                    )
                    if is_start and raw == "eval":
                        word = "__eval"
                    out.append(f"__x {word}" if is_path and not self.looking_at("()") else word)
                    is_start = is_start and raw in _KEYWORDS
        self.depth -= 1
        return "".join(out)

    def _find(self, what: str) -> int:
        place = self.text.find(what, self.at)
        return len(self.text) if place < 0 else place

    def _assigned(self, name: str, word: str) -> str:
        value = self.script.forced.get(name)
        if value is None:
            return word
        return f"{name}=" + "'" + value.replace("'", "'\\''") + "'"

    def _array(self) -> str:
        self.at += 1
        return f"({self._words(')')})"

    def _words(self, end: str) -> str:
        """Return words over several lines up to `end`, which is passed over."""
        out: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != end:
            char = self.text[self.at]
            if char == "#" and (not out or out[-1][-1:].isspace()):
                self.at = self._find("\n")
            elif char in " \t\n;&|()<>":
                self.at += 1
                out.append(char)
            else:
                out.append(self.word())
        self.at += 1
        return "".join(out)

    def word(self, stop: str = "") -> str:
        """Return the next word, or the text up to a sign of `stop`."""
        out: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if stop and char in stop:
                break
            if char == "\\":
                out.append(self.text[self.at : self.at + 2])
                self.at += 2
            elif char in "'\"":
                out.append(self._quoted(char))
            elif char in "$`":
                out.append(self.expansion())
            elif char in "<>" and self.text[self.at + 1 : self.at + 2] == "(" and not stop:
                self.at += 2
                begun = self.at
                self.commands(")")
                out.append(self.script.mark(f"{char}({self.text[begun : self.at]}", self.line))
            elif not stop and (char.isspace() or char in ";&|()<>"):
                break
            elif (plain := _PLAIN.match(self.text, self.at)) and not stop:
                out.append(plain[0])
                self.at = plain.end()
            else:
                out.append(char)
                self.at += 1
        return "".join(out)

    def _quoted(self, quote: str) -> str:
        begun, self.at = self.line, self.at + 1
        if quote == "'":
            start, self.at = self.at, self._find("'")
            inner = self.text[start : self.at]
        else:
            inner = self.double_quoted('"')
        if self.at >= len(self.text):
            self.script.unclosed.append(begun)
        self.at += 1
        return f"{quote}{inner}{quote}"

    def double_quoted(self, end: str) -> str:
        """Return the text inside double quotes up to `end`, which is not passed over."""
        out: list[str] = []
        while self.at < len(self.text) and (not end or self.text[self.at] != end):
            char = self.text[self.at]
            if char == "\\":
                out.append(self.text[self.at : self.at + 2])
                self.at += 2
            elif char in "$`":
                out.append(self.expansion(is_quoted=True))
            else:
                out.append(char)
                self.at += 1
        return "".join(out)

    def expansion(self, *, is_quoted: bool = False, marks: bool = True) -> str:
        """Return an expansion, which begins with `$` or a backquote."""
        if self.text[self.at] == "`":
            return self._backquoted()
        begun, self.at = self.at, self.at + 1
        if self.looking_at("((") and (close := self._close_arithmetic(self.at + 2)):
            inner, self.at = self.text[self.at + 2 : close], close + 2
            shown = _Reader(self.script, inner.replace('"', ""), self.line, self.depth)
            empty = " ".join(self.empty.intersection(_IDENTIFIER.findall(inner)))
            return f'$(__math {self.line} "{shown.double_quoted("")}" {empty})'
        if self.looking_at("("):
            self.at += 1
            return self._substitution(begun)
        if self.looking_at("{"):
            self.at += 1
            return self._braced(is_quoted=is_quoted, marks=marks)
        if not is_quoted and self.text[self.at : self.at + 1] in {"'", '"'}:
            if self.looking_at('"'):
                return self._quoted('"')
            quote = re.compile(r"'(?:[^'\\]|\\.)*'?", re.DOTALL).match(self.text, self.at)
            self.at = quote.end() if quote else len(self.text)
            return self.text[begun : self.at]
        name = _NAME.match(self.text, self.at)
        if name is None:
            return "$"
        self.at = name.end()
        return self._plain(name[0], marks=marks)

    def _plain(self, name: str, *, marks: bool) -> str:
        if name in _VOLATILE or name == "$":
            return self.script.mark(f"${name}", self.line)
        if not marks or name in self.empty or name in "@*#?!_-0":
            return f"${{{name}}}"
        if name.isdigit():  # a function knows which arguments it has
            return f"${{{name}-$(__argument {self.script.mark(f'${name}', self.line)})}}"
        return f"${{{name}-{self.script.mark(f'${name}', self.line, name)}}}"

    def _braced(self, *, is_quoted: bool, marks: bool) -> str:
        match = re.compile(r"([!#]?)([A-Za-z_]\w*|\d+|[@*#?$!_-])(\[)?").match(self.text, self.at)
        if match is None or (match[1] and match[2] in "#?$!-" and self.text[match.end(1)] == "}"):
            return "${"
        sign, name = match[1], match[2]
        self.at = match.end()
        index = ""
        if match[3]:
            index = f"[{self.word(']')}]"
            self.at += 1
        if self.looking_at("}") and not sign:
            self.at += 1
            return f"${{{name}{index}}}" if index else self._plain(name, marks=marks)
        operator = re.compile(r":?[-=+?]|[:#%/^,@]?").match(self.text, self.at)
        sign_after = operator[0] if operator else ""
        self.at += len(sign_after)
        inner = self.double_quoted("}") if is_quoted else self.word("}")
        self.at += 1
        whole = f"${{{sign}{name}{index}{sign_after}{inner}}}"
        is_default = sign_after[-1:] in set("-=+?") and not sign
        if is_default or index[:2] in {"[@", "[*"} or name in "@*#?$!_-":
            return whole
        if name in self.empty or not marks:
            return f"$(__marks 0 {name}){whole}"
        return f"$(__marks {self.script.mark(f'${name}', self.line, name)} {name}){whole}"

    def _substitution(self, begun: int) -> str:
        """Return `$(...)`, whose opening is passed over; its commands print its mark."""
        line, before = self.line, self.text[max(0, begun - 80) : begun]
        number = len(self.script.substitutions)
        name = re.search(r"(?:^|[\s;&|(])([A-Za-z_]\w*)=[\"']?$", before)
        self.script.mark("", line, name[1] if name else "")
        documents, self.documents = self.documents, []
        body = self.commands(")")
        self.documents = documents
        return self._numbered(number, self.text[begun : self.at], body)

    def _numbered(self, number: int, shown: str, body: str) -> str:
        known = self.script.substitutions[number]
        self.script.substitutions[number] = known._replace(text=shown[:400])
        if re.fullmatch(r"\s*<<< \S+\s*", body):  # $(<file)
            body = f"cat {body}"
        return f"$(__S={number};{body})" if body.strip() else "$(:)"

    def _backquoted(self) -> str:
        begun, line = self.at, self.line
        match = re.compile(r"`((?:[^`\\]|\\.)*)`?", re.DOTALL).match(self.text, self.at)
        self.at = match.end() if match else len(self.text)
        number = len(self.script.substitutions)
        self.script.mark("", line)
        inner = _Reader(
            self.script, re.sub(r"\\([`$\\])", r"\1", match[1] if match else ""), line, self.depth
        )
        return self._numbered(number, self.text[begun : self.at], inner.commands(""))

    def _close_arithmetic(self, start: int) -> int:
        """Return where the `))` of an expression is; 0 if there is none."""
        depth = 0
        for match in re.finditer(r"[()]", self.text[start : start + MAX_ARITHMETIC]):
            depth += 1 if match[0] == "(" else -1
            if depth == -2:
                close = start + match.start() - 1
                return close if self.text[close] == ")" else 0
        return 0

    def _arithmetic_command(self) -> str:
        close, line = self._close_arithmetic(self.at + 2), self.line
        if not close:
            self.at += 1
            return "("
        inner, self.at = self.text[self.at + 2 : close], close + 2
        names = " ".join(dict.fromkeys(_IDENTIFIER.findall(inner)))
        text = _Reader(self.script, inner, line, self.depth).word("\0")
        return f"{{ __names {line} {names}; (({text})); __decide $? {line} '(('; }}"

    def _condition(self) -> str:
        """Return `[[ ... ]]` that asks about what it reads, and only about that."""
        line, out, before = self.line, [], ""
        self.at += 2
        while self.at < len(self.text):
            char = self.text[self.at]
            if char.isspace():
                out.append(char)
                self.at += 1
                continue
            start = self.at
            if re.match(r"\]\](?![^\s;&|)<>])", self.text[start : start + 3]):
                self.at += 2
                break
            is_pattern = before == "=~"
            word = self._condition_word(empty=before in {"-z", "-n"}, is_pattern=is_pattern)
            raw = self.text[start : self.at]
            if re.fullmatch(r"-[abcdefghkprstuwxGLNOS]", before) and raw not in {"]]", "&&", "||"}:
                word = f"$(__t {self.script.mark(f'{before} {raw}', line)}){word}"
            before = raw
            out.append(word)
        return f"{{ [[{''.join(out)}]]; __decide $? {line} '[['; }}"

    def _condition_word(self, *, empty: bool, is_pattern: bool) -> str:
        out: list[str] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                quoted = not quoted
            elif char == "'" and not quoted:
                out.append(self._quoted("'"))
                continue
            elif char in "$`" and not (char == "$" and self.text[self.at + 1] in " )|\n"):
                inner = self.expansion(is_quoted=True, marks=not empty)
                out.append(f'$(__t "{inner}")')
                continue
            elif char == "\\":
                out.append(char)
                self.at += 1
                char = self.text[self.at : self.at + 1]
            elif not quoted and (char.isspace() or (char in "()" and not is_pattern)):
                if not out and char in "()":
                    self.at += 1
                    return char
                break
            out.append(char)
            self.at += 1
        return "".join(out)

    def _case(self, line: int) -> str:
        self._blanks()
        return f"case $(__case {line} {self.word()})"

    def _for(self, keyword: str, line: int) -> str:
        """Return the start of a loop; one over words that are not known may have no round."""
        head = re.compile(r"[ \t]+([A-Za-z_]\w*)[ \t]+in(?=[ \t])").match(self.text, self.at)
        if head is None:
            if keyword == "for" and (start := re.compile(r"[ \t]*\(\(").match(self.text, self.at)):
                close = self._close_arithmetic(start.end())
                inner = self.text[start.end() : close or start.end()]
                self.at = close + 2 if close else start.end()
                names = " ".join(set(_IDENTIFIER.findall(inner)))
                return f"__for {line} $(__names {line} {names}) && for (({inner}))"
            return keyword
        self.at = head.end()
        words = []
        while self.at < len(self.text) and self.text[self.at] not in ";\n#":
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
                words.append(" ")
            else:
                words.append(self.word() or self._take())
        listed = "".join(words)
        return f"__for {line} {listed} && {keyword} {head[1]} in {listed}"

    def _take(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _blanks(self) -> None:
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()

    def _redirection(self) -> re.Match[str] | None:
        match = _REDIRECT.match(self.text, self.at)
        if match is None or re.match(r"[<>]\($", self.text[self.at : self.at + 2]):
            return None
        return match

    def _redirected(self, match: re.Match[str]) -> str:
        """Return a redirection without its file."""
        number, operator = match.groups()
        self.at = match.end()
        if operator in {"<<", "<<-"}:
            delimiter = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\\.|[^\s;&|()<>])+").match(
                self.text, self.at
            )
            if delimiter:
                self.at = delimiter.end()
                name = re.sub(r"['\"\\]", "", delimiter[0])
                self.documents.append((name, name == delimiter[0], operator == "<<-"))
                return f"{match[0]}{delimiter[0]}"
            return ""
        if operator in {">&", "<&"} and re.match(r"[\d-]", self.text[self.at : self.at + 1]):
            return f"{number}{operator}{self.word()}"
        if operator == "<<<":
            return f"{number}<<< {self.word()}"
        if operator == "<":
            if self.looking_at("<("):
                begun, self.at = self.at, self.at + 2
                return f'{number}<<< "{self._substitution(begun)}"'
            begun = self.at
            self.word()
            return (
                f"{number}<<< {self.script.mark(f'$(< {self.text[begun : self.at]})', self.line)}"
            )
        self.word()
        if operator in {"&>", "&>>"} or (operator == ">&" and not number):
            return ">&8 2>&8"
        return f"{number or ('0' if operator == '<>' else '1')}>&8"

    def _here_documents(self) -> list[str]:
        """Return the bodies of the documents that begin on this line."""
        bodies = []
        for name, is_expanded, has_tabs in self.documents:
            start = self.at
            end = re.compile(rf"^{'	*' if has_tabs else ''}{re.escape(name)}$", re.MULTILINE)
            found = end.search(self.text, start)
            stop = found.start() if found else len(self.text)
            body = self.text[start:stop]
            if is_expanded:
                body = _Reader(self.script, body, self.line, self.depth).double_quoted("")
            self.at = found.end() if found else stop
            bodies.append(body + (found[0] if found else ""))
        self.documents = []
        return bodies
