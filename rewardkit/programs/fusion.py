"""Grade programs on a server of SandboxFusion (`POST /run_code`), or one that speaks its protocol.

A Python program takes one request: `inside.driver` goes there with the program and its inputs, confines
it as the local sandbox does, as far as that kernel can, and sends its outputs back, which are compared
here. Programs in other languages take a request for each test, and the server alone confines them.

From the source of SandboxFusion (469de08): a program that prints more than about 130,000 bytes waits for
a reader until its time limit; `isolation: none` is the default; its images are for amd64.
"""

import asyncio
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from rewardkit.background_loop import is_background_thread, submit
from rewardkit.errors import RewardkitError, UsageError
from rewardkit.jsonl import parse_json
from rewardkit.model_client import client
from rewardkit.model_client.client import NoContactError, TryAgainError
from rewardkit.programs import grade
from rewardkit.programs.asserts import as_calls
from rewardkit.programs.grade import Grade, Grading
from rewardkit.programs.inside.driver import MAX_PRINT, RESULTS
from rewardkit.programs.local import SandboxError
from rewardkit.programs.problem import Problem

T = TypeVar("T")
Result = tuple[dict[str, Any], bytes]

#: Bytes of all outputs of a Python program; of the expected ones half of them.
MAX_BYTES = 1 << 24
#: Bytes of a reply: the outputs twice in base64, compressed badly.
MAX_REPLY_BYTES = 1 << 26
#: Seconds to compile a program, after which the server counts as overloaded.
COMPILE_SECONDS = 60
#: After these requests in a row without an answer, none is sent for these seconds.
MAX_FAILURES, PAUSE_SECONDS = 8, 10.0

#: What the driver needs, in the order of their imports.
_MODULES = ("wire", "jail", "runner", "watch", "server")
_ENDPOINT = "/run_code"
_STATUSES = frozenset("ok cpu idle memory output threads files signal exit sandbox".split())


def grade_remotely(problem: Problem, program: str, grading: Grading) -> Grade:
    """Grade a program on the server of `grading.sandbox_url`. Waits for it.

    Raises:
        UsageError: the URL cannot be used, or this row is not for this backend.
        SandboxError: the server failed in each try.
    """
    if reason := obstacle(problem):
        raise UsageError(f"backend=sandbox_fusion cannot grade this row: {reason}.")
    if problem.settings["language"] != "python":
        tests = grade.sample(problem, grading.tests)
        runs = _run_each(problem, program, tests, grading)
        return grade.grade_results(problem, tests, runs, str, grading, "sandbox_fusion")
    problem = (as_calls(problem) if problem.kind == "tests" else None) or problem
    tests = problem.tests if problem.kind == "assert" else grade.sample(problem, grading.tests)
    limits = grade.limits_of(problem, grading)
    kind = "run" if problem.kind == "run" else "call"
    requests = [{**limits, "kind": kind, "body": grade.body_of(problem, each)} for each, _ in tests]
    facts = {"entry_point": problem.entry_point, "prelude": problem.settings["prelude"]}
    level, results = _run_all(grade.complete(problem, program), facts, requests, grading)
    verdicts: Iterator[Result] = iter(())
    if checker := problem.settings["checker"]:
        texts = [
            (given, expected, grade.outcome(problem, *result, expected)[0])
            for (given, expected), result in zip(tests, results, strict=False)
            if result[0]["status"] == "ok"
        ]
        requests = [{**grade.checker_request(limits, each), "body": b""} for each in texts]
        every = replace(grading, fraction=True, total_seconds=1e9)
        verdicts = iter(_run_all(checker, {}, requests, every)[1])

    def check(_: object) -> str:
        result = next(verdicts, None)  # it ends with a checker that takes too long
        return grade.checker_reason(*result) if result else "the checker was not run"

    return grade.grade_results(problem, tests, results, check, grading, level)


def obstacle(problem: Problem) -> str:
    """Return why this backend cannot grade a row, as the end of a sentence; "" if it can."""
    language = problem.settings["language"]
    if problem.kind == "tests":
        if language != "python" or as_calls(problem) is None:
            return "its tests are code that has to run beside the program; use backend=local"
        return ""
    if language != "python" and (problem.kind != "run" or problem.settings["checker"]):
        return f"programs in {language} can only read standard input, without a checker"
    sizes = [len(each) if isinstance(each, str) else 0 for _, each in problem.tests]
    if language != "python" and max(sizes) > MAX_PRINT:
        return f"SandboxFusion takes {MAX_PRINT:,} bytes of output; a test expects {max(sizes):,}"
    if sum(sizes) > MAX_BYTES // 2:
        return f"its outputs have {sum(sizes):,} bytes, more than {MAX_BYTES // 2:,}; use backend=local"
    return ""


def server_of(url: str) -> str:
    """Return the URL of a server without the path of its endpoint, which verl's own option has.

    Raises:
        UsageError: it is not a URL.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(
            f"sandbox_url {url!r}: write it as http://HOST:8080{_ENDPOINT}, the address of SandboxFusion."
        )
    return url.rstrip("/").removesuffix(_ENDPOINT)


def _run_all(
    source: str, facts: Mapping[str, str], requests: Sequence[dict[str, Any]], grading: Grading
) -> tuple[str, list[Result]]:
    """Run a Python program on all tests. Return how it was confined, and the results."""
    data = {
        "modules": {name: _text_of(name) for name in _MODULES},
        "program": facts,
        "source": source,
        "tests": [
            {**each, "body": each["body"].decode("utf-8", "surrogatepass")} for each in requests
        ],
        "total_seconds": grading.total_seconds,
        "total_bytes": MAX_BYTES,
        "idle_seconds": grade.IDLE_SECONDS,
        "stop": not grading.fraction,
    }
    payload = b64encode(zlib.compress(json.dumps(data).encode())).decode()
    body = {
        "code": f"{_text_of('driver')}\n\nmain({payload!r})\n",
        "language": "python",
        "run_timeout": 0.9 * grading.request_seconds,
        "fetch_files": [RESULTS],
    }
    return _post(grading, body, _read_results)


def _run_each(
    problem: Problem, program: str, tests: Sequence[tuple[str, Any]], grading: Grading
) -> Iterator[Result]:
    limits = grade.limits_of(problem, grading)
    language = problem.settings["language"]
    body = {
        "code": program.encode("utf-8", "replace").decode(),
        "language": language,
        "compile_timeout": COMPILE_SECONDS,
        # The server only measures time on the wall.
        "run_timeout": 2 * limits["cpu_seconds"] + grade.IDLE_SECONDS,
        # A limit of address space, with which Java, Node and Go do not start.
        "memory_limit_MB": limits["memory_mb"] if language == "cpp" else -1,
    }
    for text, _ in tests:
        report, output = _post(grading, {**body, "stdin": text}, _read_run)
        yield report, output
        if report["is_compiler"]:
            break


@cache
def _text_of(module: str) -> str:
    return (Path(__file__).parent / "inside" / f"{module}.py").read_text("utf-8")


def _reply(text: bytes) -> Mapping[str, Any]:
    """Return a reply of SandboxFusion whose commands ran.

    Raises:
        TryAgainError: it is not one, or the server failed.
    """
    try:
        reply = parse_json(text)
        status, message = reply["status"], str(reply.get("message", ""))
        results = {name: reply.get(name) or {} for name in ("compile_result", "run_result")}
        statuses = {each.get("status") for each in results.values()}
        errors = [
            str(each["stderr"]) for each in results.values() if each.get("return_code") == 127
        ]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        raise NoContactError("the reply is not one of SandboxFusion.") from None
    if status == "SandboxError" or statuses <= {None, "Error"}:
        raise TryAgainError(f"the sandbox failed: {(message[-200:] or status).rstrip('.')}.")
    if any("command not found" in each for each in errors):
        raise TryAgainError(f"the server cannot run this language: {errors[0].strip()[-200:]}.")
    if results["compile_result"].get("status") == "TimeLimitExceeded":
        message = f"the compiler took more than {COMPILE_SECONDS} s."
        raise TryAgainError(message, is_timeout=True)
    return {**reply, **results}


def _read_results(text: bytes) -> tuple[str, list[Result]]:
    """Return what the driver wrote, as the file that it left or as its last line."""
    reply = _reply(text)
    run, files = reply["run_result"], reply.get("files")
    if run.get("status") == "TimeLimitExceeded":
        message = "the driver took too long; raise request_seconds, or lower concurrency."
        raise TryAgainError(message, is_timeout=True)
    line = str(run.get("stdout") or "").strip().rpartition("\n")[2]
    for content in (files.get(RESULTS, "") if isinstance(files, dict) else "", line):
        try:
            text = zlib.decompressobj().decompress(b64decode(content), 2 * MAX_BYTES)
            header, _, body = text.partition(b"\n")
            level, items = parse_json(header)
            results, start = [], 0
            for item in items:
                end = start + max(0, int(item["size"]))
                results.append((_report(item), body[start:end]))
                start = end
            return "+".join(["sandbox_fusion", *filter(None, str(level)[:80].split("+"))]), results
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError, zlib.error):
            continue
    error = str(run.get("stderr") or "").strip().rpartition("\n")[2][-200:].rstrip(".")
    raise TryAgainError(
        f"the driver ended with status {run.get('return_code')}, no results: {error}."
    )


def _report(item: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: float(item[name]) for name in ("cpu_seconds", "wall_seconds")}
    numbers |= {name: int(item[name]) for name in ("code", "memory_mb")}
    if item["status"] not in _STATUSES:
        raise ValueError
    if item["status"] == "sandbox":
        raise TryAgainError("a program was not confined, or ended by the server.")
    return {**numbers, "status": item["status"], "stderr": str(item["stderr"])[-2_000:]}


def _read_run(text: bytes) -> Result:
    """Return the report and the output of a program that the server ran itself."""
    reply = _reply(text)
    is_compiler = bool(reply["compile_result"].get("return_code"))
    run = reply["compile_result"] if is_compiler else reply["run_result"]
    try:
        code, seconds = int(run.get("return_code") or 0), float(run.get("execution_time") or 0.0)
    except (TypeError, ValueError):
        raise NoContactError("the reply is not one of SandboxFusion.") from None
    is_timeout = run.get("status") == "TimeLimitExceeded"
    report = {
        "status": "cpu" if is_timeout else "signal" if code < 0 else "exit" if code else "ok",
        "code": code,
        "cpu_seconds": seconds,
        "wall_seconds": seconds,
        "memory_mb": 0,
        "stderr": str(run.get("stderr") or "")[-2_000:],
        "is_compiler": is_compiler,
    }
    return report, str(run.get("stdout") or "").encode("utf-8", "surrogatepass")


class _Client:
    """The client of one server, with a breaker; belongs to one event loop."""

    def __init__(self, url: str, concurrency: int, seconds: float, retries: int) -> None:
        server = client.Server(
            url, "sandbox", timeout_seconds=seconds, max_reply_bytes=MAX_REPLY_BYTES
        )
        self.requests = client.ModelClient(server, concurrency, retries + 1)
        self.failures, self.resume_time, self.message = 0, 0.0, ""

    async def post(self, body: Mapping[str, Any], read: Callable[[bytes], T]) -> T:
        """Return what `read` makes of the reply to a request."""
        if monotonic() < self.resume_time:
            raise SandboxError(self.message)
        try:
            result = await self.requests.ask_for(body, read)
        except (TryAgainError, client.PromptRefusedError, RewardkitError) as error:
            self.failures += 1
            self.message = f"SandboxFusion at {self.requests.server.base_url}: {error}"
            if self.failures >= MAX_FAILURES:
                self.resume_time = monotonic() + PAUSE_SECONDS
            raise SandboxError(self.message) from None
        self.failures = 0
        return result


#: By event loop: a forked process has another loop, and connections of its own.
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, _Client]] = WeakKeyDictionary()


def _post(grading: Grading, body: Mapping[str, Any], read: Callable[[bytes], T]) -> T:
    if is_background_thread():  # which would wait for itself
        raise UsageError("it waits; call it in a thread: await asyncio.to_thread(score, ...).")
    url = server_of(grading.sandbox_url)
    key = (url, grading.concurrency, grading.request_seconds, grading.retries)

    async def work() -> T:
        clients = _clients.setdefault(asyncio.get_running_loop(), {})
        if key not in clients:
            clients[key] = _Client(*key)
        return await clients[key].post(body, read)

    return submit(work()).result()
