"""The part of `math_verify` that needs the package Math-Verify, in a process of its own.

It is a module of its own because verl's reward manager `remote` pickles the file of a scorer, and a
cached function pickles only where its module can be imported.
"""

import os
from functools import cache
from typing import Any

from rewardkit.errors import MissingPackageError
from rewardkit.isolate.function import IsolatedFunction
from rewardkit.isolate.serve import Limits, Loaded

#: Memory for a response, in MiB, and processes: calls that run at once.
MEMORY_MB, MAX_WORKERS = 512, min(4, os.cpu_count() or 1)

# Wall time per second of CPU time: a busy machine must not cause a timeout.
_WALL_FACTOR = 5


@cache
def isolated(seconds: float) -> IsolatedFunction:
    """Return Math-Verify in processes of its own, each call with these seconds of CPU time."""
    limits = Limits(
        seconds=_WALL_FACTOR * seconds,
        cpu_seconds=seconds,
        memory_mb=MEMORY_MB,
        workers=MAX_WORKERS,
    )
    # SymPy's results depend on the order of sets, which depends on the seed of the hash.
    environment = {"PYTHONHASHSEED": "0"}
    return IsolatedFunction(load, (), "math_verify", limits, environment=environment, is_quiet=True)


def load() -> Loaded:
    """Import the package, and return its verdicts, with the same calls as verl's `math_verify`.

    A request has `response` and `gold`, the latter without its box. The reply has `gold_parsed`: whether
    the gold can be read; `pred`: the text extracted from the response, or None; `correct`: whether
    any reading of it equals any reading of the gold.

    Raises:
        MissingPackageError: Math-Verify is not installed.
    """
    try:
        from math_verify.grader import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            verify,
        )
        from math_verify.parser import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            ExprExtractionConfig,
            LatexExtractionConfig,
            parse,
        )
    except ImportError as error:
        raise MissingPackageError(
            f"math_verify: {type(error).__name__}: {error}. It needs the package Math-Verify: "
            "pip install 'rewardkit[math-verify]'."
        ) from error

    def judge(request: dict[str, str]) -> dict[str, Any]:
        # The package's own timeouts are off, because they use an alarm.
        box = rf"\boxed{{{request['gold']}}}"
        gold = parse(box, (LatexExtractionConfig(),), parsing_timeout=None)
        forms = ExprExtractionConfig(), LatexExtractionConfig()
        pred = parse(request["response"], forms, parsing_timeout=None) if gold else []
        correct = any(verify(g, p, timeout_seconds=None) for p in pred for g in gold)
        # The last reading of the response is its text, after the expression that it is parsed to.
        text = next((each for each in pred if isinstance(each, str)), "") if pred else None
        return {"gold_parsed": bool(gold), "pred": text, "correct": correct}

    # Calls run in forks of this process, so that the parser's tables and patterns are built once.
    judge({"gold": r"\frac{1}{2}", "response": r"It is 1/2, so \boxed{\frac{1}{2}}."})
    return Loaded(judge, is_forked=True)
