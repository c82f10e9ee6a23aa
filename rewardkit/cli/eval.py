"""`rewardkit eval`: `run`, `responses` and `compare`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import (
    TerminatedError,
    activity,
    prints_to_stderr,
    progress,
    warn,
)
from rewardkit.cli.shared.eval_output import (
    generation_progress,
    print_comparison,
    print_report,
    print_suite,
)
from rewardkit.cli.shared.help import PanelGroup, examples
from rewardkit.cli.shared.options import (
    Hub,
    HubName,
    Jobs,
    JsonFlag,
    LoadSeconds,
    Overwrite,
    RightScore,
    Scorer,
    SecondsPerRow,
    Settings,
    require_companion,
    scorer_options,
)
from rewardkit.cli.shared.request_options import (
    Api,
    ApiKeyEnv,
    ApiName,
    Concurrency,
    ExtraBody,
    MaxTokens,
    Parquet,
    PerRequest,
    RequestSeconds,
    Samples,
    Seed,
    Stop,
    Suite,
    SuiteFolder,
    Temperature,
    TopK,
    TopP,
    Tries,
    generation_config,
)
from rewardkit.cli.shared.user_code import require_sets
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.evaluate.evaluation import ScorerConfig
    from rewardkit.evaluate.suite import SuiteMember

RUN_EXAMPLES = (
    "rewardkit eval run test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 32 \\",
    "    --out m.jsonl",
    "rewardkit eval run test.parquet --base-url https://api.example.com/v1 \\",
    "    --api-key-env EXAMPLE_KEY --model M -n 4 --temperature 0.6 --seed 1 --out runs/m.jsonl",
    "rewardkit eval run test.parquet --base-url http://127.0.0.1:8000/v1 --model M -n 64 \\",
    "    --out m.jsonl --resume",
    "rewardkit eval run --suite aime2024:32,aime2025:32,math-500:4,gsm8k --base-url URL \\",
    "    --model M --out runs/m",
)
RESPONSES_EXAMPLES = (
    "rewardkit eval responses test.parquet validation_dumps/100.jsonl --json",
    "rewardkit eval responses test.parquet lm_eval/*.jsonl --out runs/lm_eval.jsonl",
)
COMPARE_EXAMPLES = ("rewardkit eval compare runs/before.jsonl runs/after.jsonl",)

app = typer.Typer(
    cls=PanelGroup,
    help="Evaluate a model with the reward it was trained on.",
    no_args_is_help=True,
    epilog=examples(*RUN_EXAMPLES[:2], RESPONSES_EXAMPLES[0], COMPARE_EXAMPLES[0]),
    rich_markup_mode=None,
)


@app.command("run", epilog=examples(*RUN_EXAMPLES))
def run(
    ctx: typer.Context,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Base URL of the server: http://HOST:PORT/v1.")
    ],
    model: Annotated[str, typer.Option(help="Model name sent to the server.")],
    out: Annotated[
        Path,
        typer.Option(help="jsonl file for the scored responses; a folder with --suite."),
    ],
    parquet: Parquet = None,
    suite: Suite = None,
    suite_dir: SuiteFolder = None,
    hub: Hub = HubName.huggingface,
    n: Samples = 1,
    api: ApiName = Api.chat,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    max_tokens: MaxTokens = None,
    stop: Stop = None,
    seed: Seed = None,
    extra_body: ExtraBody = None,
    per_request: PerRequest = 1,
    concurrency: Concurrency = 256,
    request_seconds: RequestSeconds = 1800.0,
    tries: Tries = 9,
    api_key_env: ApiKeyEnv = None,
    scorer: Scorer = "auto",
    settings: Settings = None,
    right_score: RightScore = None,
    seconds_per_row: SecondsPerRow = 60.0,
    load_seconds: LoadSeconds = 60.0,
    jobs: Jobs = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep the responses of a finished --out; request what a larger -n adds.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Generate responses with a model server and score them.

    Any OpenAI-compatible server works; the pictures of rows are sent as data URLs. Responses are
    written as they arrive: run the same command again to resume an interrupted evaluation, or with
    --resume and a larger -n to add responses to a finished one. The table has mean@n, pass@k and
    maj@k with intervals over questions; the JSON has every k, every subject and every level.
    Compare runs with `rewardkit leaderboard`.
    """
    from rewardkit.evaluate.evaluation import evaluate
    from rewardkit.evaluate.suite import evaluate_suite

    if resume and overwrite:
        raise UsageError("--resume keeps the responses of --out, --overwrite discards them.")
    scoring = _scoring(scorer, settings, seconds_per_row, load_seconds, jobs, right_score)
    generation = generation_config(ctx.params, base_url, model)
    _warn_if_greedy(temperature, n, suite)
    sets = _questions(ctx, parquet, suite, suite_dir, n, hub, scoring)
    with _resumable(out), generation_progress() as callbacks, prints_to_stderr():
        if parquet:
            report = evaluate(
                parquet,
                generation,
                out,
                scoring,
                overwrite=overwrite,
                resume=resume,
                callbacks=callbacks,
            )
        else:
            reports = evaluate_suite(
                sets,
                generation,
                out,
                scoring,
                overwrite=overwrite,
                resume=resume,
                callbacks=callbacks,
            )
    if parquet:
        print_report(report, as_json=as_json)
    else:
        print_suite(reports, out, as_json=as_json)


@app.command("responses", epilog=examples(*RESPONSES_EXAMPLES))
def responses(
    ctx: typer.Context,
    parquet: Annotated[Path, typer.Argument(help="verl parquet with the questions.")],
    files: Annotated[
        list[str],
        typer.Argument(
            help="Response files: verl's dumps, results of `eval run`, output of a batch API, or "
            "logs of AISBench, lm-eval or lighteval."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="jsonl file for the scored responses.")] = None,
    scorer: Scorer = "auto",
    settings: Settings = None,
    right_score: RightScore = None,
    seconds_per_row: SecondsPerRow = 60.0,
    load_seconds: LoadSeconds = 60.0,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Score responses that already exist.

    Responses are matched to the questions of the parquet; nothing is generated.
    """
    from rewardkit.evaluate.evaluation import evaluate_responses

    with prints_to_stderr(), activity(f"judging responses to {parquet}"):
        report = evaluate_responses(
            parquet,
            files,
            out,
            _scoring(scorer, settings, seconds_per_row, load_seconds, jobs, right_score),
            overwrite=overwrite,
        )
    print_report(report, as_json=as_json)


@app.command("watch", hidden=True, context_settings={"ignore_unknown_options": True})
def watch(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Say where the loop over checkpoints is."""
    raise UsageError(
        "`eval watch` is now a loop in bash: docs/eval.md, 'Each checkpoint of a run'."
    )


@app.command("compare", epilog=examples(*COMPARE_EXAMPLES))
def compare(
    a: Annotated[Path, typer.Argument(help="Results of the first run: its --out.")],
    b: Annotated[Path, typer.Argument(help="Results of the second run.")],
    as_json: JsonFlag = False,
) -> None:
    """Compare the results of two runs, question by question.

    Prints the difference B - A with its interval and p-value (paired t-test over questions).
    """
    from rewardkit.evaluate.result_comparison import compare_results

    print_comparison(compare_results(a, b), as_json=as_json)


def _scoring(
    scorer: str,
    settings: list[str] | None,
    seconds: float,
    load_seconds: float,
    jobs: int | None,
    right_score: float | None = None,
) -> ScorerConfig:
    from rewardkit.evaluate.evaluation import ScorerConfig
    from rewardkit.parallel import cores

    return ScorerConfig(
        scorer,
        scorer_options(settings),
        timeout_seconds=seconds,
        load_seconds=load_seconds,
        right_score=right_score,
        jobs=jobs or cores(),
    )


def _questions(
    ctx: typer.Context,
    parquet: Path | None,
    suite: str | None,
    suite_dir: Path | None,
    n: int,
    hub: HubName,
    scoring: ScorerConfig,
) -> list[SuiteMember]:
    """Return the sets of questions; missing sets of a suite are prepared first."""
    from rewardkit.evaluate.suite import (
        SuiteMember,
        names_in_suite,
        parse_suite,
        prepare_member,
    )
    from rewardkit.preprocess.set_names import default_suite_folder

    for name in ("suite_dir", "hub"):
        require_companion(ctx, name, "--suite", is_set=suite is not None)
    if (parquet is None) == (suite is None):
        raise UsageError("name either a parquet with questions, or sets with --suite.")
    if parquet:
        return [SuiteMember(parquet.stem, parquet, n)]
    require_sets(names_in_suite(suite or ""), scoring.load_seconds)
    sets = parse_suite(suite or "", suite_dir or default_suite_folder(), n)
    for member in sets:
        with progress(f"preparing {member.name}") as advance:
            if prepare_member(member, hub.value, scoring.jobs, advance):
                warn(f"{member.name}: prepared {member.parquet}")
    return sets


def _warn_if_greedy(temperature: float | None, n: int, suite: str | None) -> None:
    if temperature == 0 and (n > 1 or re.search(r":(?!1\b)\d", suite or "")):
        warn("temperature 0 is greedy: all responses to a question will be the same.")


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, TerminatedError):
        warn(f"{out}: interrupted; run the same command again to resume.")
        raise
