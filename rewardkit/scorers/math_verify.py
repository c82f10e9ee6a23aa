r"""Math-Verify's verdicts, from a process that can be killed, for comparison with other runs.

verl loads this file directly: `rewardkit path math_verify --verl` prints the override. It
needs the package: `pip install 'rewardkit[math-verify]'`.

The verdict is that of verl's own `math_verify` reward: the gold is read as LaTeX in a `\boxed{}`,
the response as LaTeX or a plain expression, with the package's defaults. The differences are:

* verl's reward runs for up to 30 s, and the package stops itself with SIGALRM, which works only in
  the main thread. Here the kernel kills a helper process and the response counts as wrong:
  `timeout`, or `too_long` if the process died or exceeded its memory.
* Only the last 20,000 characters of a response are read, and a longer gold is unreadable.
* A gold from which Math-Verify extracts nothing is reported as `bad_ground_truth`.

`pred` is the text that Math-Verify extracts, after its own normalisation. The package passes plain
arithmetic, digits and operators only, to SymPy's `parse_expr`, which evaluates text. Here this
happens in the helper process; the scorer `math` never does it.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any

from rewardkit.errors import MissingPackageError, RewardkitError
from rewardkit.isolate.child_process import ChildTimeoutError
from rewardkit.isolate.function import CallError, Reply
from rewardkit.scorers import _math_verify_target
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.options import Range, invalid_value_error

#: Characters at the end of a response that are read, and the longest gold.
MAX_CHARS = 20_000


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
    *,
    seconds: Annotated[float, Range(0.001, 3600)] = 2.0,
) -> Score:
    """Judge a response as Math-Verify does: 1.0 if correct, 0.0 if not.

    Args:
        response: the model's text.
        ground_truth: the gold answer, without a box.
        extra_info: unused.
        seconds: CPU time per response, in seconds.

    Raises:
        MissingPackageError: Math-Verify is not installed.
        UsageError: `seconds` is not positive.
        RewardkitError: no helper process can be started.
    """
    if not seconds > 0:
        raise invalid_value_error(score, "seconds", seconds)
    gold = accept_gold(ground_truth)
    if not gold.strip() or len(gold) > MAX_CHARS:
        return Score.wrong("", Status.BAD_GROUND_TRUTH)
    outcome = _math_verify_target.isolated(seconds).call(
        {"gold": gold, "response": response[-MAX_CHARS:]}
    )
    if isinstance(outcome, RewardkitError):
        raise outcome
    if isinstance(outcome, CallError):
        return Score.wrong("", Status.UNPARSED_ANSWER)
    if not isinstance(outcome, Reply):
        is_late = isinstance(outcome, ChildTimeoutError)
        return Score.wrong("", Status.TIMEOUT if is_late else Status.TOO_LONG)
    value = outcome.value
    if not value["gold_parsed"]:
        return Score.wrong("", Status.BAD_GROUND_TRUTH)
    if value["pred"] is None:
        return Score.wrong("", Status.NO_ANSWER)
    return Score.right(value["pred"]) if value["correct"] else Score.wrong(value["pred"])


def require_package(_options: Mapping[str, Any]) -> None:
    """Require that Math-Verify is installed.

    Raises:
        MissingPackageError: it is not.
    """
    if find_spec("math_verify") is None:
        raise MissingPackageError(
            "scorer 'math_verify' needs the package Math-Verify: pip install 'rewardkit[math-verify]'."
        )


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return rf"\boxed{{{answer}}}"


SPEC = ScorerSpec(score, __doc__, respond, check_options=require_package)

#: What verl calls.
compute_score = SPEC.compute_score
