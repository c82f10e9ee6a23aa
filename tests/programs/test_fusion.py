"""Grading on a SandboxFusion server: what is paid, what the server gets, and what its failures are."""

import ast
import asyncio
import base64
import json
import random
import re
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardkit.errors import UsageError
from rewardkit.model_client import client
from rewardkit.programs import fusion
from rewardkit.programs.asserts import as_calls
from rewardkit.programs.local import SandboxError
from rewardkit.programs.problem import read_problem
from rewardkit.scorers.code import compute_score, grade
from tests.judging.faulty_server import FAULTS, PASSING_FAULTS, completion, serving
from tests.programs.hostile import CALL, HELPERS, RUN
from tests.programs.sandbox_server import run_code

DOUBLE = {"inputs": ["4\n", "-3\n"], "outputs": ["8\n", "-6\n"]}
RIGHT, WRONG = "print(2 * int(input()))", "print(2 + int(input()))"
ASSERTS = {"assert_case": ["assert double(21) == 42", "assert abs(double(0.1) - 0.2) < 1e-6"]}
CHECKER = """import sys
given, _, output = (open(name).read().split() for name in sys.argv[1:])
print(int(sum(map(int, output)) == int(given[0])))"""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Try again at once; the tests count tries, not seconds."""
    monkeypatch.setattr(client, "BACKOFF_SECONDS", 0.001)


@pytest.fixture
def server():
    with serving() as server:
        server.always = run_code
        yield server


def outcome(server, tests, program, **options):
    ground_truth = json.dumps(tests)
    url = f"{server.url}/run_code"
    return grade(program, ground_truth, backend="sandbox_fusion", sandbox_url=url, **options)


def logged(server, program=RIGHT, **options):
    """What verl gets for a program."""
    options = {"backend": "sandbox_fusion", "sandbox_url": server.url, "retries": 1, **options}
    return compute_score("taco", program, json.dumps(DOUBLE), None, **options)


def payload(body):
    """The data of a driver's request."""
    return json.loads(
        zlib.decompress(base64.b64decode(re.findall("main\\('(.*)'\\)", body["code"])[-1]))
    )


def reply(stdout="", status="Success", files=None, **fields):
    """A fault that answers every request with this text."""
    run = {
        "status": "Finished",
        "execution_time": 0.1,
        "return_code": 0,
        "stdout": stdout,
        **fields,
    }
    body = {
        "status": status,
        "message": "",
        "compile_result": None,
        "run_result": run,
        "files": files,
    }
    return lambda handler, _: handler.say(200, body)


def results(*reports):
    """Results as a driver prints them."""
    numbers = {"cpu_seconds": 0.1, "wall_seconds": 0.1, "code": 0, "memory_mb": 1, "stderr": ""}
    items = [{**numbers, "status": status, "size": len(output)} for status, output in reports]
    data = json.dumps(["", items]).encode() + b"\n" + b"".join(output for _, output in reports)
    return base64.b64encode(zlib.compress(data)).decode()


def test_a_program_is_paid_for_its_outputs_alone_and_takes_one_request(server):
    """Printed, returned, asserted and checked outputs are compared here."""
    cases = [
        (DOUBLE, RIGHT, True),
        (DOUBLE, WRONG, False),
        (
            {"fn_name": "f", "inputs": ["[1, 2]"], "outputs": ["[2, 1]"]},
            "def f(x): return x[::-1]",
            1,
        ),
        (ASSERTS, "def double(x): return 2 * x", True),
        (ASSERTS, "def double(x): return x", False),
        (ASSERTS, "import os; os._exit(0)", False),
        (DOUBLE, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)", False),
    ]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda case: outcome(server, *case[:2]), cases))
    assert [score.correct for score, _ in outcomes] == [bool(case[2]) for case in cases]
    assert len(server.bodies) == len(cases)
    assert outcomes[0][1].level.startswith("sandbox_fusion+seccomp")
    assert outcomes[1][1].failure["expected"] == "8\n"
    assert outcomes[4][1].failure["expected"] == "double(21) == 42"


def test_a_server_whose_kernel_confines_nothing_is_named(server):
    """As one for amd64 that an Arm host emulates: the programs run, and the level says so."""

    def unconfined(handler, body):
        code = body["code"].replace("if host.failure():", "if True:")
        run_code(handler, {**body, "code": code})

    server.always = unconfined
    score, result = outcome(server, DOUBLE, RIGHT)
    assert (score.correct, result.level) == (True, "sandbox_fusion")
    assert logged(server, "import os; os.kill(os.getppid(), 9)")["acc"] == 0.0


def test_the_checker_of_a_row_runs_in_a_request_of_its_own(server):
    """The request of the program has no expected output, that of the checker no program."""
    tests = {"inputs": ["9\n", "7\n"], "outputs": ["9\n", "7\n"], "checker": CHECKER}
    program = "n = int(input())\nprint(n - 1, 1 if n == 9 else 2)"
    score, result = outcome(server, tests, program, reward="fraction")
    assert (score.score, result.passed, len(server.bodies)) == (0.5, 1, 2)
    assert payload(server.bodies[1])["source"] == CHECKER


@pytest.mark.parametrize("tests", [{"inputs": ["4"], "outputs": ["8675309"]}, {"assert_case": ["assert f(4) == 8675309"]}])  # fmt: skip
def test_no_request_has_an_expected_output(server, tests):
    """Neither in its text nor in its compressed part."""
    server.always = reply(results(("ok", b"1")))
    assert not outcome(server, tests, "f = abs")[1].passed
    (body,) = server.bodies
    assert "8675309" not in json.dumps(body) + json.dumps(payload(body))


@pytest.mark.parametrize(
    "fault", [*PASSING_FAULTS, "drip", "not HTTP", "body b'<html>gateway</html>'"]
)
def test_a_failure_that_passes_is_tried_again(server, fault):
    """The program is right, whatever the first request met."""
    server.always = reply(results(("ok", b"8\n"), ("ok", b"-6\n")))
    server.faults = {0: fault}
    assert outcome(server, DOUBLE, RIGHT, request_seconds=1.0)[1].is_right
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    "fault",
    [
        *(FAULTS[name] for name in ("500", "never", "reset", "redirect to a page", "gzip bomb")),
        *(FAULTS[name] for name in FAULTS if name.startswith("body ")),
        FAULTS["deep objects"],
        lambda handler, _: handler.say(200, completion("8")),
        lambda handler, _: handler.say(422, {"detail": "language"}),
        reply("8\n-6\n"),
        reply("all tests passed", files={fusion.RESULTS: "8"}),
        reply(status="SandboxError"),
        reply(status="Failed", return_code=1, stderr="SyntaxError: match"),
        reply(status="Failed"),
        reply(results(("sandbox", b""))),
        reply(status="Failed", return_code=127, stderr="bash: line 1: python: command not found"),
        reply(base64.b64encode(zlib.compress(b'["", [{"size": 1e999}]]\n')).decode()),
        reply(results(("perfect", b"8\n"))),
        reply(results(("ok", b"8\n"))[:40]),
    ],
)
def test_a_server_that_fails_is_an_error_and_never_a_wrong_answer(server, fault):
    """Also if it answers with a success and any text."""
    server.always = fault
    fields = logged(server, request_seconds=1.0, retries=0)
    assert (fields["error"], fields["score"], fields["tests_run"]) == (1.0, 0.0, 0.0)


def test_a_message_of_the_server_ends_with_one_full_stop(server):
    server.always = reply(status="Failed", return_code=1, stderr="No memory is left.")
    with pytest.raises(SandboxError, match=r"results: No memory is left\.$"):
        outcome(server, DOUBLE, RIGHT, retries=0)


def test_what_a_program_forges_is_only_an_output(server):
    """Results without confinement can be forged, but their outputs have to be right."""
    server.always = reply(results(("ok", b"[true]"), ("ok", b"passed")))
    assert (logged(server)["error"], logged(server)["acc"]) == (0.0, 0.0)


def test_half_of_the_requests_may_fail_and_no_verdict_is_swapped(server):
    """Each of many programs at once has its own verdict."""

    def prints(handler, body):
        text = payload(body)["source"][6:-1].encode()
        reply(results(("ok", text), ("ok", b"-6")))(handler, body)

    server.always, server.faults = prints, lambda number, _: "500" if number % 2 else None
    programs = [f"print({number})" for number in range(60)]
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda each: logged(server, each, retries=99), programs))
    assert [program for program, row in zip(programs, rows, strict=True) if row["acc"]] == [
        "print(8)"
    ]
    assert not any(row["error"] for row in rows)


def test_a_server_that_is_down_is_left_alone_for_a_while(server, monkeypatch):
    """After some failures in a row a program fails at once, and later the server is tried again."""
    monkeypatch.setattr(fusion, "PAUSE_SECONDS", 0.3)
    server.always = FAULTS["500"]
    rows = [logged(server, retries=0) for _ in range(fusion.MAX_FAILURES + 5)]
    assert len(server.bodies) == fusion.MAX_FAILURES
    assert all(row["error"] for row in rows)
    server.always = reply(results(("ok", b"8\n"), ("ok", b"-6\n")))
    asyncio.run(asyncio.sleep(0.35))
    assert logged(server, retries=0)["acc"] == 1.0


def test_nobody_listens():
    """A refused connection is an error that names the address."""
    with pytest.raises(SandboxError, match=r"127\.0\.0\.1:9.*cannot connect"):
        grade(RIGHT, json.dumps(DOUBLE), backend="sandbox_fusion", sandbox_url="http://127.0.0.1:9")


def test_outputs_that_are_too_long_to_print_come_as_a_file(server):
    """A server that returns no files is an error."""
    program = "import random\nprint('%x' % random.Random(1).getrandbits(3_000_000))"
    tests = {"inputs": [""], "outputs": [f"{random.Random(1).getrandbits(3_000_000):x}"]}
    assert outcome(server, tests, program)[1].is_right
    server.always = lambda handler, body: run_code(handler, {**body, "fetch_files": []})
    with pytest.raises(SandboxError, match="no results"):
        outcome(server, tests, program, retries=0)


LANGUAGES = {
    "C++": (
        "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n; }",
        "int main() { return 0 }",
    ),
    "javascript": (
        "console.log(2 * +require('fs').readFileSync(0))",
        "while (true) {}",
    ),
}


@pytest.mark.parametrize(("language", "command"), [("C++", "g++"), ("javascript", "node")])
@pytest.mark.full
def test_other_languages_take_a_request_for_each_test(server, language, command):
    """One that does not compile, or does not end, is wrong after the first."""
    if not shutil.which(command):
        pytest.skip(f"{command} is not installed")
    tests = {**DOUBLE, "language": language}
    right, wrong = LANGUAGES[language]
    assert outcome(server, tests, f"```{language}\n{right}\n```")[1].is_right
    assert len(server.bodies) == 2
    score, result = outcome(server, tests, wrong, reward="fraction", seconds=0.2)
    assert (score.score, result.run, result.timeout) == (0.0, 1, language == "javascript")
    assert result.failure["reason"]
    with pytest.raises(UsageError, match="set backend=sandbox_fusion"):
        grade(right, json.dumps(tests))


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ({"assert_case": ["for i in range(3):\n    assert f(i) == i"]}, "use backend=local"),
        ({"inputs": [""], "outputs": ["x" * 9_000_000]}, "9,000,000 bytes"),
        ({**DOUBLE, "language": "go", "fn_name": "f"}, "can only read standard input"),
        ({"inputs": [""], "outputs": ["x" * 150_000], "language": "java"}, "takes 100,000 bytes"),
    ],
)
def test_a_row_that_the_backend_cannot_grade_says_what_to_do(server, tests, reason):
    """Nothing is sent."""
    with pytest.raises(UsageError, match=reason):
        outcome(server, tests, "f = abs")
    assert not server.bodies


def test_the_address_is_checked_and_verl_may_pass_it(server):
    """Its keyword counts where the option is not set; a coroutine cannot wait."""
    server.always = reply(results(("ok", b"8\n"), ("ok", b"-6\n")))
    url = f"{server.url}/run_code"
    assert logged(server, sandbox_url="", sandbox_fusion_url=url)["acc"] == 1.0
    for bad in ("", "localhost:8080", "ftp://host/run_code"):
        with pytest.raises(UsageError, match="sandbox_url"):
            grade(RIGHT, json.dumps(DOUBLE), backend="sandbox_fusion", sandbox_url=bad)

    async def in_the_loop():
        return logged(server)

    assert fusion.submit(in_the_loop()).result()["error"] == 1.0


@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        ("assert f(1) == (1, 2)", (1, 2), [1, 2]),
        ("assert [1] == f(1), 'message'", [1], [1, 1]),
        ("assert f(1)", 3, 0),
        ("assert not f(x=1)", "", "no"),
        ("assert f(1) is None", None, False),
        ("assert f(2 * 3, *[]) == 1", None, None),
        ("assert abs(f([1, 2 * 3]) - 0.5) < 1e-6", 0.5000001, "0.5"),
        ("assert math.isclose(f(1), 2, rel_tol=0.1)", 2.1, 2.5),
        ("assert sorted(f(1)) == [1, 2]", [2, 1], None),
        ("assert f(1) == -inf", float("-inf"), 0),
        ("assert f(1) in (3 + 4, 8)", 7, 3),
        ("def check(g):\n    assert True\n    assert g(1) != 2\ncheck(f)", 1, 2),
        ("assert f(f(1)) == 2", None, None),
        ("assert f(1) == f(2)", None, None),
        ("assert g(1) == 2", None, None),
        ("assert f(1) == len(x)", None, None),
        ("assert f(1) == 'ab' * 10**9", None, None),
        ("assert f(**{'x': 1}) == 2", None, None),
        ("import numpy\nfrom numpy import abs\nassert abs(f(1)) == 2", None, None),
        ("x = 1\nassert f(1) == 2", None, None),
        ("assert False", None, None),
        ("assert f(" + "(" * 5000, None, None),
    ],
)
def test_an_assertion_holds_as_python_says_or_is_not_read(test, right, wrong):
    """What it says about a result is what Python says."""
    problem = as_calls(read_problem(json.dumps({"test": test, "entry_point": "f"})))
    if right is None and wrong is None:
        assert problem is None
        return
    ((_, assertion),) = problem.tests
    assert assertion.holds(right)
    assert not assertion.holds(wrong)
    assert ast.unparse(ast.parse(repr(assertion))) in ast.unparse(ast.parse(test))


def test_a_set_has_the_same_order_here_and_on_a_server(server):
    """A program that depends on it has one verdict."""
    tests, program = {"inputs": [""], "outputs": ["?"]}, "print(set(map(str, range(50))))"
    here = grade(program, json.dumps(tests))[1].failure["got"]
    assert len(here) > 50
    assert here == outcome(server, tests, program)[1].failure["got"]


@pytest.mark.full
@pytest.mark.parametrize("name", [*RUN, *CALL])
def test_hostile_programs_are_not_paid(server, name):
    """What holds on this machine holds there."""
    stdin = {"inputs": ["7\n"], "outputs": ["the-answer-is-4242"]}
    function = {"inputs": [[7]], "outputs": [[41, "the-answer-is-4242"]], "fn_name": "f"}
    tests, program = (stdin, RUN[name][0]) if name in RUN else (function, CALL[name])
    limits = {"seconds": 0.4, "total_seconds": 2.0, "memory_mb": 128, "request_seconds": 60.0}
    result = outcome(server, tests, HELPERS + program, **limits)[1]
    assert result.failure
    assert not result.is_right


def test_the_kept_programs_get_their_labels(server, shared):
    """Of 36 programs that fool others or that others refuse, none gets the wrong verdict."""
    lines = (shared / "cases/code_probe.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    scores = [outcome(server, each["tests"], each["code"], seconds=2.0)[0] for each in cases]
    assert [score.correct for score in scores] == [each["label"] for each in cases]
