"""The judge as a reward of a real verl: its loader, its reward loop or manager, its router.

The router is verl's own; behind it is a judge on loopback.
"""

import socket
import time
from contextlib import ExitStack
from threading import Thread

import pytest

from rewardkit.launch.verl.releases import reward_key
from rewardkit.scorers.load import location
from tests.integration.conftest import VERL, make_batch, read_outputs
from tests.integration.test_verl import expected, right_or_wrong, rows_of
from tests.judging.faulty_server import serving as serving_judge


def equal_texts(body):
    """Say yes if the response is the reference, as a perfect judge of these rows does."""
    prompt = body["messages"][-1]["content"]
    reference, response = (
        prompt.partition(f"[{name} ")[2].partition("begins]\n")[2].partition("\n[")[0]
        for name in ("REFERENCE", "RESPONSE")
    )
    return {"reason": "Compared.", "verdict": "yes" if reference == response else "no"}


@pytest.fixture
def route():
    """Return a function that starts verl's router in front of a server and returns its address."""
    import uvicorn
    from verl.experimental.reward_loop.router.naive_router import NaiveRouter

    with ExitStack() as routers:

        def start(url):
            app = NaiveRouter(worker_urls=[url.removesuffix("/v1")]).app
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            router = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
            thread = Thread(target=router.run)
            thread.start()
            routers.callback(thread.join)
            routers.callback(setattr, router, "should_exit", True)
            routers.callback(setattr, router, "force_exit", True)  # also while it tries again
            while not router.started and thread.is_alive():
                time.sleep(0.05)
            assert router.started
            return f"127.0.0.1:{port}"

        yield start


@pytest.fixture
def judged(compose, tokenizer, boxed_parquet):
    """Score verl's rows in its reward loop through a router: rewards and extra keys."""

    def run(address, **options):
        import asyncio

        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

        key = reward_key(VERL)
        settings = [f"+{key}.reward_kwargs.{name}={value}" for name, value in options.items()]
        config = compose(f"{key}.path={location('judge')}", *settings)
        data = make_batch(config, tokenizer, [boxed_parquet], right_or_wrong)

        async def score():
            return await RewardLoopWorker(config, address).compute_score_batch(data)

        return read_outputs(asyncio.run(score()))

    return run


def test_the_manager_naive_scores_with_a_judge(score_batch, boxed_parquet):
    with serving_judge(equal_texts) as server:
        settings = f"+{reward_key(VERL)}.reward_kwargs.base_url={server.url}"
        rewards, extras = score_batch(
            "naive", location("judge"), [boxed_parquet], right_or_wrong, settings
        )
    assert rewards == [expected(row) for row in rows_of(boxed_parquet)]
    assert {extra["judge_failed"] for extra in extras} == {0.0}
    assert {extra["judge_tokens"] for extra in extras} == {60.0}


@pytest.mark.parametrize("takes_schema", [True, 400])
def test_the_reward_loop_asks_through_verl_s_router(route, judged, boxed_parquet, takes_schema):
    """The router lists the server's models, and answers 500 to a schema that the server refuses."""
    with serving_judge(equal_texts, takes_schema=takes_schema) as server:
        rewards, extras = judged(route(server.url))
    assert rewards == [expected(row) for row in rows_of(boxed_parquet)]
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


def test_a_reward_worker_of_ray_and_another_process_share_the_cache(
    private_ray, reward_worker, compose, tokenizer, judged, boxed_parquet, tmp_path
):
    """The worker is an actor, whose own loop is uvloop's."""
    key, cache = reward_key(VERL), tmp_path / "cache"
    config = compose(f"{key}.path={location('judge')}", f"+{key}.reward_kwargs.cache={cache}")
    data = make_batch(config, tokenizer, [boxed_parquet], right_or_wrong)
    with serving_judge(equal_texts) as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        result = reward_worker.score.remote(config, data, address)
        batches = [private_ray.get(result, timeout=300), judged(address, cache=cache)]
    for (rewards, extras), is_cached in zip(batches, (0.0, 1.0), strict=True):
        assert rewards == [expected(row) for row in rows_of(boxed_parquet)]
        assert {extra["judge_cached"] for extra in extras} == {is_cached}
    assert len(server.bodies) == len(rows_of(boxed_parquet))
