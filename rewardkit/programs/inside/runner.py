"""What a runner does with a program: run it, call it, serve it to a test, or be that test.

The process is already confined. Nothing here is protected from the program, which shares it; what it
sends is only data for the grader or for the test, which run elsewhere.
"""

import ast
import atexit
import builtins
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, GeneratorType, ModuleType
from typing import Any, NoReturn

from wire import WireError, dump, dump_tree, load, receive, send, write  # type: ignore[import-not-found]

#: Characters of a failing test that are reported.
MAX_TEXT = 1_000
#: Failing tests that are reported.
MAX_FAILURES = 3

#: What LeetCode and the graders of LiveCodeBench and PRIME give a solution that is called.
_PRELUDE = (
    "\n".join(
        f"from {name} import *"
        for name in "typing collections itertools functools heapq bisect string operator math".split()
    )
    + "\nimport collections, itertools, functools, heapq, bisect, string, math, random, re, sys, copy\n"
)

_METHOD = re.compile(r"(\w+)\(\)\.(\w+)")


def compile_program(source: str) -> CodeType:
    """Return the code of a program."""
    return compile(source, "main.py", "exec", dont_inherit=True)


def run(program: str | CodeType, request: Mapping[str, Any], report: int) -> NoReturn:
    """Run a program as `python main.py` does, and end."""
    os.close(report)
    sys.argv = ["main.py", *request.get("arguments", ())]
    main = _module("__main__")
    status = _status_of(lambda: exec(_code(program), main.__dict__))
    end_status = _status_of(_end, main)
    os._exit(status or end_status)


def _end(main: ModuleType) -> None:
    """Do what the interpreter does at its end, without freeing all modules."""
    if "threading" in sys.modules:
        with suppress(AttributeError):
            sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    main.__dict__.clear()
    for stream in (sys.stdout, sys.__stdout__, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def call(program: Mapping[str, Any], source: str | CodeType, text: str, report: int) -> NoReturn:
    """Call the program's function with the arguments in a text, send its result, and end."""

    def result() -> None:
        arguments, keywords = load(text)
        names = _load(program, source, _module("solution"))
        value = _entry(names, program["entry_point"])(*arguments, **keywords)
        write(report, dump_tree(value).encode())

    os._exit(_status_of(result))


def serve(
    program: Mapping[str, Any], source: str, questions: int, answers: int, report: int
) -> NoReturn:
    """Answer the questions of a test: names of the program, their attributes, and calls."""
    os.close(report)  # only the test may report
    objects: list[Any] = []
    names: dict[str, Any] = {}
    records: dict[str, type] = {}

    def handle(item: Any) -> int:
        objects.append(item)
        return len(objects) - 1

    def answer(question: Mapping[str, Any], body: str) -> Any:
        match question["ask"]:
            case "names":
                names.update(_load(program, source, _module("solution"), records))
                return {name: names[name] for name in question["names"] if name in names}
            case "entry":
                return _entry(names, question["name"])
            case "attribute":
                return getattr(objects[question["object"]], question["name"])
        arguments, keywords = load(body, records, objects.__getitem__)
        result = objects[question["object"]](*arguments, **keywords)
        if isinstance(result, GeneratorType):
            result = list(result)
        return (result, arguments, keywords) if question["mutable"] else (result, (), {})

    while True:
        question, body = receive(questions)
        try:
            text = dump(answer(question, body.decode("utf-8", "surrogatepass")), records, handle)
            send(answers, {}, text.encode("utf-8", "surrogatepass"))
        except BaseException as error:  # noqa: BLE001 - the program may raise anything
            message = [type(error).__name__, _text_of(error)]
            send(answers, {"raises": message})


def run_tests(
    program: Mapping[str, Any],
    texts: list[str],
    answers: int,
    questions: int,
    report: int,
) -> NoReturn:
    """Run the tests of a row against a program in another process, report on them, and end."""
    tests = _Tests(program, _Client(questions, answers))
    try:
        tests.run(texts)
    except BaseException as error:  # noqa: BLE001 - also SystemExit, of the row's own tests
        tests.fail("", error)
        tests.is_complete = False
    names = ("count", "passed", "failures", "is_complete", "is_broken")
    facts = {name: getattr(tests, name) for name in names}
    write(report, json.dumps(facts).encode())
    os._exit(0)


class _Client:
    """The program as its tests see it: its names as values, and as proxies of functions and objects."""

    def __init__(self, questions: int, answers: int) -> None:
        self.questions, self.answers = questions, answers
        self.records: dict[str, type] = {}
        self.last: Any = None

    def ask(self, question: Mapping[str, Any], body: str = "") -> Any:
        """Return the answer to a question; raise what the program raised."""
        send(self.questions, question, body.encode("utf-8", "surrogatepass"))
        try:
            header, text = receive(self.answers)
        except EOFError:
            raise ProgramError("the program has ended") from None
        if "raises" in header:
            name, message = header["raises"]
            kind = getattr(builtins, str(name), None)
            if not (isinstance(kind, type) and issubclass(kind, Exception)) or "Stop" in name:
                # A StopIteration would end a loop of the test, which then passes.
                kind = ProgramError
            try:
                raise kind(message)
            except TypeError:  # UnicodeDecodeError takes five arguments
                raise ProgramError(message) from None
        return load(text.decode("utf-8", "surrogatepass"), self.records, self.proxy)

    def proxy(self, number: int) -> "_Proxy":
        """Return an object of the program, which stays there."""
        return _Proxy(self, number)

    def attribute(self, number: int, name: str) -> Any:
        """Return an attribute of an object of the program."""
        return self.ask({"ask": "attribute", "object": number, "name": name})

    def call(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call an object of the program, and change the arguments as the program did."""
        flat = [*arguments, *keywords.values()]
        mutable = any(type(each) in (list, dict, set) or self._is_record(each) for each in flat)
        body = dump((arguments, keywords), self.records, _number_of)
        question = {"ask": "call", "object": number, "mutable": mutable}
        result, later, later_keywords = self.ask(question, body)
        self.last = result
        if mutable and dump((later, later_keywords), self.records, _number_of) == body:
            return result  # an object that did not change stays the same one for the test
        for old, new in zip(flat, [*later, *later_keywords.values()], strict=False):
            if type(old) is not type(new):
                continue
            if isinstance(old, list):
                old[:] = new
            elif isinstance(old, (dict, set)):
                old.clear()
                old.update(new)
            elif self._is_record(old):
                old.__dict__.clear()
                old.__dict__.update(new.__dict__)
        return result

    def _is_record(self, value: Any) -> bool:
        return type(value).__name__ in self.records


class ProgramError(RuntimeError):
    """The program raised an exception of its own class, ended, or returned something else than data."""


class _Proxy:
    """A function, class or object of the program. It can be called, and is equal to nothing.

    A comparison would ask the program whether its own answer is right, and a loop would have it choose
    the length, after it told `len` another one. Special methods are not asked for: numpy would take
    the answer to `__array_interface__` for the address of an array in this process.
    """

    def __init__(self, client: _Client, number: int) -> None:
        self.__dict__.update(_client=client, _number=number)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._client.call(self._number, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._client.attribute(self._number, name)

    def __getitem__(self, key: Any) -> Any:
        return self._client.attribute(self._number, "__getitem__")(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._client.attribute(self._number, "__setitem__")(key, value)

    def __len__(self) -> Any:
        return self._client.attribute(self._number, "__len__")()

    def __eq__(self, *_: object) -> Any:
        raise TypeError("the program returned an object of its own class, which is not data")

    __bool__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __iter__ = (
        __reversed__
    ) = __eq__
    __hash__ = None  # type: ignore[assignment]


def _number_of(value: Any) -> int:
    if type(value) is _Proxy:
        return int(value._number)
    raise WireError(f"a test passes a value of type {type(value).__name__}, which is not data")


#: In `check`, a call may be a test without an assertion, as `assertion(candidate(1), 2, 0)` of EvalPlus.
_CHECKS = (ast.Assert, ast.Call)
_TEST = re.compile("check$|test|Test")
_NO_TESTS = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)


class _Tests:
    """The statements of a test, one after another; each with an assertion counts."""

    def __init__(self, program: Mapping[str, Any], client: _Client) -> None:
        self.program, self.client = program, client
        self.count = self.passed = 0
        self.failures: list[dict[str, str]] = []
        self.is_complete = self.is_broken = True
        self.names = _module("tests").__dict__

    def run(self, texts: list[str]) -> None:
        """Run the assertions of a row, then its `check`, then its functions `test_*`."""
        trees = [(ast.parse(text), text) for text in texts]
        entry = self.program.get("entry_point", "")
        exec(self.program.get("prelude", ""), self.names)
        self.client.records.update(_classes(self.names))
        library = _library([tree for tree, _ in trees])
        names = _program_names([tree for tree, _ in trees], entry, self.names, library)
        self.is_broken = False
        answer = self.client.ask({"ask": "names", "names": sorted(names)})
        solution = {name: answer[name] for name in names & answer.keys()}  # and nothing else
        sys.modules["solution"] = ModuleType("solution")
        sys.modules["solution"].__dict__.update(solution)
        self.names.update({**library, **self.names, **solution})
        candidate = self.client.ask({"ask": "entry", "name": entry}) if entry else None
        for tree, text in trees:
            own = [each for each in tree.body if not isinstance(each, ast.FunctionDef)]
            has_tests = any(isinstance(node, ast.Assert) for each in own for node in ast.walk(each))
            has_tests |= any(_TEST.match(getattr(each, "name", "")) for each in tree.body)
            self.statements(tree.body, text, ast.Assert if has_tests else _CHECKS)
        for tree, text in trees:
            for each in tree.body:
                if isinstance(each, ast.FunctionDef) and each.name == "check":
                    self.names[each.args.args[0].arg] = candidate
                    self.statements(each.body, text, _CHECKS)
        for name, value in [*self.names.items()]:
            if name.startswith("test") and isinstance(value, FunctionType):
                self.one(name, value)
            elif name.startswith("Test") and isinstance(value, type):
                for method in [each for each in dir(value) if each.startswith("test")]:
                    self.one(f"{name}.{method}", partial(_call_method, value, method))

    def statements(self, body: list[ast.stmt], text: str, tests: Any = ast.Assert) -> None:
        """Run statements of a module or of `check`; those with some kind of node are tests."""
        for statement in body:
            called = getattr(getattr(statement, "value", None), "func", None)
            if isinstance(called, ast.Name) and called.id == "check":
                continue  # its statements are run one after another later
            code = compile(ast.Module([statement], []), "tests.py", "exec")
            is_test = any(isinstance(each, tests) for each in ast.walk(statement))
            if is_test and not isinstance(statement, _NO_TESTS):
                source = ast.get_source_segment(text, statement) or ""
                self.one(source, partial(exec, code, self.names))
                continue
            try:
                exec(code, self.names)
            except ImportError as error:
                # A package of the test is missing here, or a name of the program.
                is_import = isinstance(statement, (ast.Import, ast.ImportFrom))
                self.is_broken = is_import and error.name != "solution"
                raise

    def one(self, source: str, test: Callable[[], Any]) -> None:
        """Run one test and count it."""
        self.count += 1
        self.client.last = None
        try:
            test()
            self.passed += 1
        except BaseException as error:  # noqa: BLE001 - pytest's failures are no exceptions
            self.fail(source, error)

    def fail(self, source: str, error: BaseException) -> None:
        """Report why a test failed."""
        if len(self.failures) < MAX_FAILURES:
            got = "" if self.client.last is None else _text_of(self.client.last, ascii)
            what = {
                "test": source,
                "got": got,
                "error": f"{type(error).__name__}: {_text_of(error)}",
            }
            self.failures.append({key: value[:MAX_TEXT] for key, value in what.items()})


def _call_method(kind: type, name: str) -> None:
    unittest = sys.modules.get("unittest")
    instance = kind(name) if unittest and issubclass(kind, unittest.TestCase) else kind()
    getattr(instance, "setUp", lambda: None)()
    getattr(instance, name)()


def _library(trees: list[ast.Module]) -> dict[str, Any]:
    """Return the names that tests may use without importing them."""
    names: dict[str, Any] = {}
    exec(_PRELUDE, names)
    if any(isinstance(each, ast.Name) and each.id == "np" for each in _nodes(trees)):
        names["np"] = importlib.import_module("numpy")
    return {name: value for name, value in names.items() if not hasattr(builtins, name)}


def _nodes(trees: list[ast.Module]) -> list[ast.AST]:
    return [node for tree in trees for node in ast.walk(tree)]


def _program_names(
    trees: list[ast.Module], entry: str, known: Mapping[str, Any], library: Mapping[str, Any]
) -> set[str]:
    """Return the names that a test takes from the program.

    They are its entry point, what it imports from it, and what it uses and does not define. A name of
    the library or a built-in one is the program's only if the test uses no others, as in
    `assert sum(10, 15) == 6`, and has no call of others in its arguments: a program could otherwise
    define the `abs`, the `Counter` or the `isclose` that judges its own result.
    """
    nodes = _nodes(trees)
    imports = [each for each in nodes if isinstance(each, ast.ImportFrom)]
    defined = {each.name for each in nodes if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    names = [each for each in nodes if isinstance(each, ast.Name)]
    defined |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    defined |= {each.arg for each in nodes if isinstance(each, ast.arg)} | known.keys()
    for each in nodes:
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            defined |= {alias.asname or alias.name.partition(".")[0] for alias in each.names}
    imported = {alias.name for each in imports if each.module == "solution" for alias in each.names}
    used = {each.id for each in names} - defined
    own = {name for name in used if not hasattr(builtins, name) and name not in library}
    if own := own | imported | {entry} - {""}:
        return own
    calls = [each for each in nodes if _name_of_call(each) in used]
    called = set(map(_name_of_call, calls))
    called = called & library.keys() or called
    outer = {
        _name_of_call(call)
        for call in calls
        if any(_name_of_call(each) in called for each in ast.walk(call) if each is not call)
    }
    return called - outer or called


def _name_of_call(node: ast.AST) -> str:
    is_name = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if is_name else ""  # type: ignore[attr-defined]


def _load(
    program: Mapping[str, Any],
    source: str | CodeType,
    module: ModuleType,
    records: dict[str, type] | None = None,
) -> dict[str, Any]:
    """Run a program as a module, and return its names; put the classes of the row into `records`."""
    names = module.__dict__
    exec(_PRELUDE, names)
    exec(program.get("prelude", ""), names)
    if records is not None:
        records.update(_classes(names))
    exec(_code(source), names)
    return names


def _classes(names: Mapping[str, Any]) -> dict[str, type]:
    """Return the classes that the row itself defines, whose instances are data."""
    own = names["__name__"]
    return {
        name: value
        for name, value in names.items()
        if isinstance(value, type) and value.__module__ == own
    }


def _entry(names: Mapping[str, Any], name: str) -> Any:
    """Return the function `f`, or the method in `Solution().f`, also where only `f` is named."""
    method = _METHOD.fullmatch(name)
    if not method and name not in names and "Solution" in names:
        return getattr(names["Solution"](), name)
    if method and method[1] in names:
        return getattr(names[method[1]](), method[2])
    return names[method[2] if method else name]


def _module(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module


def _code(program: str | CodeType) -> CodeType:
    return compile_program(program) if isinstance(program, str) else program


def _status_of(function: Callable[..., Any], *arguments: Any) -> int:
    """Call a function; return the exit status that the interpreter would have."""
    try:
        function(*arguments)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 255
        with suppress(Exception):
            print(error.code, file=sys.stderr, flush=True)
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        with suppress(BaseException):
            traceback.print_exc(limit=-5)
            sys.stderr.flush()
        return 1
    return 0


def _text_of(value: Any, text: Callable[[Any], str] = str) -> str:
    try:
        return text(value)[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - a method of the program's
        return ""
