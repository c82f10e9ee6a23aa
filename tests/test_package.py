"""Properties of the whole package: start-up, public names, errors, hostile input."""

import builtins
import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rewardkit
from rewardkit import errors

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rewardkit"
HEAVY = {
    "torch", "verl", "datasets", "pandas", "sympy", "pyarrow", "numpy", "rich", "yaml",
    "huggingface_hub", "jinja2", "mpmath", "latex2mathml",
}  # fmt: skip


def test_start_up_imports_no_heavy_package():
    """The command line and the scorers, which both import rewardkit itself."""
    code = "import sys, rewardkit.cli.main, rewardkit.scorers.auto; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


def cpu_seconds(*command):
    """Return the shortest CPU time of a few runs; wall time would include other work of the machine."""
    import resource

    def once():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(5))


def test_import_takes_less_than_30_ms_and_help_less_than_300():
    bare = cpu_seconds(sys.executable, "-c", "pass")
    assert cpu_seconds(sys.executable, "-c", "import rewardkit") - bare < 0.030
    assert cpu_seconds(sys.executable, "-m", "rewardkit", "--help") < 0.300


def test_every_public_name_loads_and_is_listed():
    for name in rewardkit.__all__:
        assert getattr(rewardkit, name) is not None
    assert set(rewardkit.__all__) <= set(dir(rewardkit))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = rewardkit.nothing_like_this


ERRORS = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
ERRORS.remove(errors.ScorerExitedError)  # it replaces a SystemExit of other code


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_picklable_and_of_one_family(error):
    copy = pickle.loads(pickle.dumps(error("a message")))
    assert (type(copy), str(copy)) == (error, "a message")
    assert issubclass(error, errors.RewardkitError)


def test_answers_and_scorers_import_no_pyarrow_torch_or_verl():
    """verl loads scorers in processes of its own; docs/architecture.md has what a part may import."""
    banned = re.compile(r"^\s*(?:from|import) (?:pyarrow|torch|verl)\b", re.MULTILINE)
    for file in [*PACKAGE.glob("answers/**/*.py"), *PACKAGE.glob("scorers/**/*.py")]:
        assert not banned.search(file.read_text(encoding="utf-8")), file


def test_nothing_evaluates_text():
    """No call to eval, exec, sympify, parse_expr or pickle in the package, and no SIGALRM."""
    call = re.compile(r"\b(eval|exec|sympify|parse_expr|pickle\.loads?|signal\.\w+|os\.system)\(")
    own = {  # a command and a process of its own, never imported by anything
        "cli/main.py": ("signal.getsignal(number)", "signal.signal(number, _terminate)"),
        # requests from the parent process, which wrote them; replies are JSON
        "guard/guard.py": ("pickle.loads(request)",),
        "isolate/child.py": ("pickle.loads(request)",),
        # what new processes inherit; no handler
        "parallel.py": (
            "signal.pthread_sigmask(signal.SIG_BLOCK",
            "signal.pthread_sigmask(signal.SIG_SETMASK",
        ),
    }
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name == "inside":
            continue  # programs of responses, in processes of their own that are confined
        text = file.read_text(encoding="utf-8")
        for allowed in own.get(str(file.relative_to(PACKAGE)), ()):
            assert allowed in text
            text = text.replace(allowed, "")
        assert not call.search(text), file


def test_scoring_never_calls_eval(monkeypatch):
    from rewardkit import registry

    modules = [importlib.import_module(t.partition(":")[0]) for t in registry.SCORERS.values()]
    for module in modules:  # the import of a library may execute code
        module.compute_score("openai/gsm8k", "", "18", {})
    calls = []
    with monkeypatch.context() as patch:
        for name in ("eval", "exec", "compile"):
            patch.setattr(builtins, name, lambda *_, n=name, **__: calls.append(n))
        results = [
            module.compute_score("openai/gsm8k", text, "18", {"scorer": ""}, **options)
            for module in modules
            for text in ("#### __import__('os')", r"\boxed{9**9**9}", "Answer: open('x')")
            for options in ({}, {"method": "robust"})
        ]
    assert calls == []
    assert {result["score"] for result in results} <= {0.0, -1.0}
