"""The judge as a reward of a real verl: its loader, its reward loop or manager, its router, a real model.

The router is verl's own; behind it is a judge on loopback, or `transformers serve` with a tiny random
model, whose replies are never a verdict.
"""

import subprocess
import sys
import time
from inspect import iscoroutinefunction
from urllib.request import urlopen

import pytest

from rewardkit.launch.verl.reward_keys import reward_key
from rewardkit.scorers.load import location
from tests.integration.conftest import VERL, make_batch
from tests.integration.test_verl import expected, right_or_wrong, rows_of
from tests.integration.transformers_server import (
    MISSING_MODULES,
    end,
    free_port,
    serving,
    wait_for,
)
from tests.judge_server import serving as serving_judge

ROUTER = """
import sys
from verl.experimental.reward_loop.router.naive_router import run_router
run_router("127.0.0.1", int(sys.argv[1]), [sys.argv[2]])
"""


def equal_texts(body):
    """Say yes if the response is the reference, as a perfect judge of these rows does."""
    prompt = body["messages"][-1]["content"]
    reference, response = (
        prompt.partition(f"[{name} ")[2].partition("begins]\n")[2].partition("\n[")[0]
        for name in ("REFERENCE", "RESPONSE")
    )
    return {"reason": "Compared.", "verdict": "yes" if reference == response else "no"}


@pytest.fixture
def route(tmp_path, v9):
    """Return a function that starts verl's router in front of a server and returns its address."""
    if not v9:
        pytest.skip("0.5 has no router")
    processes = []

    def start(url):
        port, log = free_port(), tmp_path / "router.log"
        command = [sys.executable, "-c", ROUTER, str(port), url.removesuffix("/v1")]
        with log.open("w") as file:
            processes.append(subprocess.Popen(command, stdout=file, stderr=file))

        def answers():
            assert processes[-1].poll() is None, log.read_text()[-2000:]
            try:
                return bool(urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=5))
            except OSError:
                return False

        wait_for(answers, 120)
        return f"127.0.0.1:{port}"

    yield start
    for process in processes:
        end(process)


@pytest.fixture
def judged(compose, tokenizer, parquet):
    """Score verl's rows in its reward loop through a router: rewards and extra keys."""

    def run(address, **options):
        import asyncio

        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

        key = reward_key(VERL)
        settings = [f"+{key}.reward_kwargs.{name}={value}" for name, value in options.items()]
        config = compose(f"{key}.path={location('judge')}", *settings)
        data = make_batch(config, tokenizer, [parquet], right_or_wrong)

        async def score():
            return await RewardLoopWorker(config, address).compute_score_batch(data)

        outputs = asyncio.run(score())
        return [o["reward_score"] for o in outputs], [o["reward_extra_info"] for o in outputs]

    return run


def test_the_function_is_async_where_verl_awaits_it(load_reward, v9):
    assert iscoroutinefunction(load_reward(location("judge"))) is v9


def test_the_manager_naive_scores_with_a_judge(score_batch, parquet):
    with serving_judge(equal_texts) as server:
        settings = f"+{reward_key(VERL)}.reward_kwargs.base_url={server.url}"
        rewards, extras = score_batch(
            "naive", location("judge"), [parquet], right_or_wrong, settings
        )
    assert rewards == [expected(row) for row in rows_of(parquet)]
    assert {extra["judge_failed"] for extra in extras} == {0.0}
    assert {extra["judge_tokens"] for extra in extras} == {110.0}


@pytest.mark.parametrize("takes_schema", [True, 400])
def test_the_reward_loop_asks_through_verl_s_router(route, judged, parquet, takes_schema):
    """The router lists the server's models, and answers 500 to a schema that the server refuses."""
    with serving_judge(equal_texts, takes_schema=takes_schema) as server:
        rewards, extras = judged(route(server.url))
    assert rewards == [expected(row) for row in rows_of(parquet)]
    assert {extra["error"] for extra in extras} == {0.0}
    assert {body["model"] for body in server.bodies} == {"tiny"}


def test_a_server_that_fails_behind_the_router_is_an_error_of_every_sample(route, judged):
    with serving_judge(lambda _: 500) as server:
        address = route(server.url)
        rewards, extras = judged(address, retries=0, failed_score=-0.5)
    start = time.monotonic()
    gone, more = judged(address, timeout_seconds=1, model="tiny")
    assert set(rewards) == {-0.5}
    assert set(gone) == {0.0}
    assert {(extra["error"], extra["judge_failed"]) for extra in extras} == {(1.0, 1.0)}
    assert {extra["judge_failed"] for extra in more} == {1.0}
    assert time.monotonic() - start < 120


def test_reward_workers_of_ray_share_the_cache(
    compose, tokenizer, parquet, tmp_path, tmp_path_factory, v9
):
    """Each worker is an actor, whose own loop is uvloop's."""
    if not v9:
        pytest.skip("0.5 has no reward loop")
    ray = pytest.importorskip("ray")
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    key = reward_key(VERL)
    config = compose(
        f"{key}.path={location('judge')}", f"+{key}.reward_kwargs.cache={tmp_path / 'cache'}"
    )
    data = make_batch(config, tokenizer, [parquet], right_or_wrong)
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 * 2**20,
        _temp_dir=str(tmp_path_factory.mktemp("r")),
    )
    try:
        with serving_judge(equal_texts) as server:
            address = server.url.removeprefix("http://").removesuffix("/v1")
            workers = [ray.remote(RewardLoopWorker).remote(config, address) for _ in range(2)]
            batches = [
                ray.get(worker.compute_score_batch.remote(data), timeout=300) for worker in workers
            ]
    finally:
        ray.shutdown()
    for outputs, is_cached in zip(batches, (0.0, 1.0), strict=True):
        assert [o["reward_score"] for o in outputs] == [expected(row) for row in rows_of(parquet)]
        assert {o["reward_extra_info"]["judge_cached"] for o in outputs} == {is_cached}
    assert len(server.bodies) == len(rows_of(parquet))


@pytest.mark.skipif(bool(MISSING_MODULES), reason=f"transformers serve needs {MISSING_MODULES}")
def test_a_real_model_behind_the_router_is_asked_twice_and_never_guessed_at(
    route, judged, tmp_path, parquet
):
    with serving(tmp_path, positions=16_384) as (url, model, answered_requests):
        rewards, extras = judged(route(url), model=model, max_tokens=8, concurrency=2)
        assert answered_requests() == 2 * len(rows_of(parquet))
    assert set(rewards) == {0.0}
    assert {extra["error"] for extra in extras} == {1.0}
    assert all(extra["judge_tokens"] > 1000 for extra in extras)
