"""Bash reads a script, again and again, until it has all that the script misses.

What bash complains of is what the script misses: a variable that nothing sets, a command with a path,
a file to write to. Each complaint changes the text, or what stands before it, and bash reads it once
more. What only a run can tell is a mark in what the trainer gets. A test that depends on a mark is
answered both ways: where the trainer gets something else then, the import is refused.
"""

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from rewardkit.errors import DataError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.launch.script_import.bash_child import IS_FENCED

#: Seconds of one run and of all runs of a script, how many there may be, and tests with two answers.
RUN_SECONDS, ALL_SECONDS, MAX_RUNS, MAX_TESTS = 10, 40, 300, 100

#: A mark is a text in characters of a private plane; others stand for folders: of the user, of the
#: start and of the script.
MARK = re.compile("[\U000f0000-\U000ffffd]+")
HOME, START, SOURCE = "/\U0010f000", "/\U0010f001", "/\U0010f002"

_STAND_INS = Path(__file__).with_name("stand_ins.bash").read_text(encoding="utf-8")

#: Text in brackets three levels deep, a word of bash, `[[ ]]` and `(( ))`, and an output.
_NESTED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_WORD = rf"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\${_NESTED}|`[^`]*`|[^\s;&|()<>])"
_LINES = r"(?:[^\n]|(?<=[&|\\])\n){0,1000}?"
_CONDITION = re.compile(
    rf"(?<![^\s;&|!{{(])(?:\[\[\s{_LINES}\s\]\]|(?<!\()(?<!for )\(\({_LINES}\)\))(?![^\s;&|)}}])"
)
_OUTPUT = r"(\d*|\{\w+\}|&)<?>[>|&]?[ \t]*"

#: Why `stand_ins.bash` ends, by its exit status.
_REFUSALS = {
    96: "bash finds no UTF-8 locale, such as C.UTF-8. Install one.",
    97: "bash is older than 4.4, and reads launch scripts from 4.4 on.",
}

#: What bash does not refuse by itself: connections, and without the kernel's fence files that are read.
_CONNECTION = r"/dev/(?:tcp|udp)/"
_FILE = r"^(?!\s*#)(?!.*(?:\(\(|\[\[)).*[^<&(\w\"']<\s*[\w./~\"'$]|\$\(\s*<"
_REFUSED = (_CONNECTION, f"{_CONNECTION}|{_FILE}")

_SETTING = re.compile(r"[+~]*(?:model_engine|\w+[./@][\w./@\-]*)=|~\w+\.")
_SECTION = re.compile(
    r"[+~]*(?:actor_rollout_ref|algorithm|critic|custom_reward_function|data|model|optim|reward"
    r"|reward_model|rollout|trainer)[.@][\w.]*="
)
TRAINER_NAME = re.compile(r"|(?:.*\.)?\w*main_(?:ppo|dapo)\w*")
OTHER_NAME = re.compile(r"(?:.*[._])?(?:sft|main_eval|main_generation|model_merger)(?:[._].*)?")
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)")


class Start(NamedTuple):
    """A command that starts a trainer, or a list of settings, which has no module.

    The launcher are the words before the module or file; arguments have marks; the variables are
    those that are exported, and `DEVICE`.
    """

    line: int
    launcher: list[str]
    module: str
    arguments: list[str]
    variables: dict[str, str]


class ScriptRun(NamedTuple):
    """What a script calls, with one answer for each test that only a run can tell, by the lines.

    `ends` has the line where the script ends, and 0 if that is its end.
    """

    starts: list[Start]
    others: dict[int, list[str]]
    tests: dict[int, str]
    notes: list[tuple[int, str]]
    ends: list[int]

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of all commands that start a trainer."""
        return (word for start in self.starts for word in start.arguments)


class _UndecidedError(DataError):
    """What the trainer gets depends on something that only a run can tell."""


def env_options(names: Iterable[str]) -> str:
    """Return the options that give variables."""
    return " ".join(f"--env {name}=VALUE" for name in names)


def display(text: str) -> str:
    """Return a text for a person: a mark is what the script writes."""
    text = MARK.sub(lambda mark: "".join(chr(ord(char) - 0xF0000) for char in mark[0]), text)
    text = re.sub(rf"(?<![^=\[,'\"]){HOME}(?=[/,'\"\]}}\s]|$)", "~", text).replace("\n", " ")
    return re.sub(f"{START}|{SOURCE}", "", text).replace(HOME, str(Path.home()))


def mark(text: str) -> str:
    """Return a mark for what a script writes as `text`."""
    return "".join(chr(0xF0000 + min(ord(char), 0xFFFD)) for char in text[:80])


class ScriptRuns:
    """The runs of a script, which is started with the variables `env` and with the arguments."""

    def __init__(self, text: str, where: str, env: Mapping[str, str], arguments: list[str]) -> None:
        if refused := re.search(_REFUSED[not IS_FENCED :][0], text, re.MULTILINE):
            line, what = text.count("\n", 0, refused.end()) + 1, refused[0][-40:]
            raise DataError(f"line {line} opens a connection or a file ({what}). Remove it.")
        bash = shutil.which("bash")
        if bash is None:
            raise UsageError("Reading launch scripts needs bash 4.4 or newer on the PATH.")
        words = [bash, "--norc", "--noprofile", "-c", _STAND_INS]
        self.words = [*words, f"{SOURCE}{Path(where).absolute()}", *arguments]
        self.process: ChildProcess | None = None
        self.original, self.end = text, monotonic() + ALL_SECONDS
        own = re.compile("BASH|LC_|LD_|(?:ENV|IFS|LANG|PATH|PS4|PWD|SHELLOPTS)$")
        self.env = {"HOME": HOME, "PATH": f"/{mark('$PATH')}"}
        self.env |= {name: value for name, value in env.items() if not own.match(name)}
        self.count, self.complaints = 0, Counter[str]()
        self.modules = set(filter(find_spec, re.findall(r"\bimport ((?!__)\w+)", text)))
        self.results = re.findall(r"(?<![\w.$-])([A-Za-z_]\w*)=[\"']?(?:\$\(|`)(.{0,200})", text)[
            :500
        ]
        start = shlex.quote(env.get("PWD", f"{START}{Path.cwd()}"))
        self.before = f"__MODULES='{' '.join(self.modules)}' PWD={start}; "
        text = text.replace("BASH_SOURCE", "__SOURCE").replace("2>&1", "").replace("|&", "|")
        text = re.sub(
            r"(?<![\w.$-])(PATH|SHELL|ENV|BASH_ENV|HISTFILE|PS4|LANG|LC_\w+)=", r"__\1=", text
        )
        own = re.compile(r"(?<![\\$])\$(?:\$|\{?(?:BASHPID|EUID|PPID|UID)\b\}?)")
        text = own.sub(lambda match: mark(match[0]), text)
        for name, value in env.items():  # it also stands for the result of a command
            result = rf"(?<![\w.$-]){name}=(?=[\"']?(?:\$\([^(]|`)){_WORD}*"
            text = re.sub(result, f"{name}=$__GIVEN_{name}", text)
            self.before += f"__GIVEN_{name}={shlex.quote(value)}; "
        self.text = _CONDITION.sub(r"{ \g<0>; __decided; }", text)

    def close(self) -> None:
        """End the process in which bash reads the script."""
        if self.process:
            self.process.close()

    def explore(self) -> ScriptRun:
        """Return what the script starts."""
        flips: list[int] = []
        first = run = self._read(flips)
        while not run.starts and (rest := [line for line in run.tests if line not in flips]):
            flips.append(rest[-1])  # the last test before the end decides it
            run = self._read(flips)
        if not run.starts:
            return first
        if len(run.tests) > MAX_TESTS:
            raise DataError(f"more than {MAX_TESTS} tests that only a run can tell.")
        for line in run.tests.keys() - flips:
            try:
                other = self._read([*flips, line])
            except DataError as error:
                if isinstance(error, _UndecidedError):
                    raise
                continue  # it does not end
            if other.starts and [s[2:4] for s in run.starts] != [s[2:4] for s in other.starts]:
                words = {*run.arguments()} ^ {*other.arguments()}
                key = min(words, default="").partition("=")[0].lstrip("+~")
                raise self._undecided(line, run.tests[line], key)
        second = set(self._read(flips, ",").arguments())
        for word in run.arguments():
            if word not in second and not MARK.search(word):  # a mark's length, or a part of it
                what = "depends on the form of what only a run can tell. Write its value."
                raise DataError(f"{word.partition('=')[0]} {what}")
        return run

    def _undecided(self, line: int, test: str, what: str = "") -> _UndecidedError:
        text = display((MARK.findall(test) or [test])[0])[:80]
        names = self.names(test)[:3]
        return _UndecidedError(
            f"{what or 'what it starts'} depends on the test of line {line} ({text}), which only a run "
            f"can tell. {f'Pass {env_options(names)}.' if names else 'Write its result into the script.'}"
        )

    def names(self, text: str) -> list[str]:
        """Return the variables to give for the marks of a text."""
        names = []
        for each in map(display, MARK.findall(text)):
            names += re.findall(r"\$\{?([A-Za-z_]\w*)", each)
            if match := re.match(r"\$\((?:\S*/)?([\w.-]+)", each):
                words = each[2:].removesuffix(")")
                is_literal = words in self.original  # else it has values of variables
                same = re.escape(words) if is_literal else rf"\b{match[1]}\b"
                names += [name for name, value in self.results if re.search(same, value)][:1]
        return list(dict.fromkeys(names))

    def _read(self, flips: Sequence[int], sign: str = "") -> ScriptRun:
        """Let bash read the script until it complains of nothing new; return what it calls."""
        while True:
            status, records, messages = self._run(flips, sign)
            pairs = re.findall(r": line (\d+): (.*)", messages)
            lines = {text: int(line) - _STAND_INS.count("\n") + 1 for line, text in reversed(pairs)}
            changes = [self._learn(max(1, line), text) for text, line in lines.items()]
            if any(changes):
                continue
            run = self._sort(records.split("\0"))
            for text, line in lines.items():
                if not run.starts and re.match("syntax error|unexpected (?:EOF|token)", text):
                    raise DataError(f"line {max(1, line)}: bash says: {display(text)[:200]}.")
            if status in _REFUSALS:
                raise DataError(_REFUSALS[status])
            if status < 0 and not run.starts:
                raise DataError("takes more memory, CPU time or output than an import may.")
            return run

    def _run(self, flips: Sequence[int], sign: str) -> tuple[int, str, str]:
        """Return bash's exit status, records and messages."""
        seconds = min(RUN_SECONDS, self.end - monotonic())
        self.count += 1
        if self.count > MAX_RUNS or seconds <= 0:
            raise DataError(f"takes more than {MAX_RUNS} readings or {ALL_SECONDS} seconds.")
        before = f"__FLIPS='{' '.join(map(str, flips))}' __SIGN={sign} {self.before}"
        text = re.sub(f"({MARK.pattern[:-1]})", rf"\1{sign}", before + self.text)
        terminal = f"{mark('what is read from the terminal')}\n" * 10
        self.process = self.process or ChildProcess("rewardkit.launch.script_import.bash_child")
        try:
            request = self.words, f"{text}\0{terminal}", self.env
            reply: tuple[int, str, str] = self.process.exchange(request, seconds)
        except (ChildTimeoutError, ChildCrashError) as error:
            self.process = None
            raise DataError(str(error) or f"takes longer than {RUN_SECONDS} seconds.") from None
        return reply

    def _sort(self, fields: list[str]) -> ScriptRun:
        """Return the records of a run by what they are."""
        run, start = ScriptRun([], {}, {}, [], []), 0
        try:
            while start + 3 <= len(fields):
                kind, line, end = (
                    fields[start],
                    int(fields[start + 1]),
                    start + 3 + int(fields[start + 2]),
                )
                self._add(run, kind, line, fields[start + 3 : end])
                start = max(end, start + 3)
        except DataError:
            raise
        except (ValueError, IndexError):
            raise DataError("writes to the descriptors of the import.") from None
        return run

    def _add(self, run: ScriptRun, kind: str, line: int, words: list[str]) -> None:
        test = " ".join(words)
        if kind == "case":
            raise self._undecided(line, test)
        if kind == "probe":
            can = "it can" if test in self.modules else "it cannot"
            text = f"asks whether {test} can be imported, and on this machine {can}"
            run.notes.append((line, f"{text}: give the variable that it sets with --env."))
        elif kind == "empty":
            text = f"tests {display(test)[:80]}: what nothing sets is empty"
            run.notes.append((line, f"{text} ({env_options(self.names(test))} sets it)."))
        elif kind == "end":
            run.ends.append(line)
        elif kind == "test":
            run.tests.setdefault(line, test)
        elif kind == "command":
            count = int(words[0]) + 1
            command, variables = words[1:count], dict(v.split("=", 1) for v in words[count:])
            index, module = find_module(command)
            if module or _SETTING.match(command[0]):
                arguments = command[index + 1 if module else 0 :]
                start = Start(line, command[:index], module, arguments, variables)
                run.starts.extend([start] if start not in run.starts else [])
                return
            run.others.setdefault(line, command)
            source = "".join(self.original.split("\n")[line - 1 : line])
            if re.search(r"\b(?:if|elif|while|until)\b|&&|\|\||!", source):
                run.tests.setdefault(line, shlex.join(command))

    def _edit(self, pattern: str, new: str | Callable[[re.Match[str]], str], line: int = 0) -> bool:
        """Replace what matches in the text, from a line on only the first; return whether it did."""
        start = sum(len(each) + 1 for each in self.text.split("\n")[: max(0, line - 1)])
        below = re.compile(pattern, re.MULTILINE | re.DOTALL)
        text = below.sub(new, self.text[start:], count=int(line > 0))
        before, self.text = self.text, self.text[:start] + text
        return before != self.text

    def _learn(self, line: int, message: str) -> bool:
        """Change the script so that bash does not complain of it again; return whether it did."""
        lessons = {
            "unbound variable": self._learn_variable,
            "cannot specify `/' in command names": self._learn_command,
            "cannot redirect output": self._learn_output,
        }
        subject, _, complaint = message.replace(": restricted", "").rpartition(": ")
        lesson, unknown = lessons.get(complaint), MARK.search(message)
        if unknown and re.match(r"(?!\(\(: |\[\[: ).*(?:syntax error|invalid number)", message):
            lesson, subject = self._learn_number, unknown[0]
        if complaint == "Function not implemented" and not subject.startswith("cannot redirect"):
            what = f"reads {display(subject)[:100]}: write its content into the script."
            raise DataError(f"line {line} {what}")
        if lesson and not lesson(line, subject):
            raise DataError(f"line {line}: bash says: {display(message)[:200]}.")
        return lesson is not None

    def _learn_variable(self, _: int, name: str) -> bool:
        name = name.lstrip("$").partition("[")[0]
        self.complaints[name] += 1
        is_name, word, default = name.isidentifier(), re.escape(name), mark(f"${name}")
        if name.isdecimal():  # a function knows which arguments it has
            self.before += f"__{name}=({default}); "
            default = f"${{__{name}[0${{FUNCNAME:+1}}]-}}"
        plain = rf"(?<!\\)\$(?:\{{{word}\}}|{word}" + (r"(?!\w))" if is_name else ")")
        if self.complaints[name] == 1 and self._edit(plain, lambda _: f"${{{name}-{default}}}"):
            return True
        self.before += f"{name}={default}; " if is_name else ""
        return is_name and self.complaints[name] < 3

    def _learn_command(self, line: int, name: str) -> bool:
        if _SETTING.match(name):
            setting = r"(?<!\\\n)^(?=[ \t]*[+~]*\w[\w./@]*=)"
            return self._edit(setting, "__settings ", max(1, line - 1))
        stand_in = f"__stand_in {name}; "
        is_new = bool(re.fullmatch(r"[\w./+@:-]+", name)) and stand_in not in self.before
        self.before += stand_in if is_new else ""
        return is_new

    def _learn_output(self, line: int, file: str) -> bool:
        def nowhere(match: re.Match[str]) -> str:
            return "" if match[1] == "2" else f"{match[1].strip('&')}>&8"

        literal = rf"{_OUTPUT}([\"']?){re.escape(file)}\2(?![\w./-])"
        if file.startswith("/dev/fd/"):
            literal = rf"{_OUTPUT}>{_NESTED}"
        with_expansion = rf"{_OUTPUT}(?=[^\s;|&()]*[$`]){_WORD}+"
        return self._edit(literal, nowhere) or self._edit(with_expansion, nowhere, line)

    def _learn_number(self, line: int, unknown: str) -> bool:
        spans = re.findall(rf"\$\((?=\(){_NESTED[2:]}", self.text.split("\n", line - 1)[-1])
        own = "|".join([r".\(.*\$\(", *(rf"\b{name}\b" for name in self.names(unknown))])
        for span in sorted(spans, key=lambda span: not re.search(own, span))[:1]:
            return self._edit(re.escape(span), mark(span), line)
        raise self._undecided(line, unknown)


def find_module(words: Sequence[str]) -> tuple[int, str]:
    """Return the index of a trainer's module or file in a command, and the module; 0 and ""."""
    for i, word in enumerate(words[1:], 1):
        is_module = words[i - 1] == "-m" and re.fullmatch(r"[A-Za-z_][\w.]{0,200}", word, re.ASCII)
        is_file = re.fullmatch(r"[^\0]{0,200}\.py", word) and any(map(_PYTHON.fullmatch, words[:i]))
        if (is_module or is_file) and not word.startswith("torch."):
            name = word.removesuffix(".py").lstrip("./").replace("/", ".")
            is_known = TRAINER_NAME.fullmatch(name) or OTHER_NAME.fullmatch(name)
            return (i, name) if is_known or any(map(_SECTION.match, words[i + 1 :])) else (0, "")
    return 0, ""
