"""The killable worker runs in a threaded Ray actor, as rewards do in verl."""

from __future__ import annotations

import pytest


class Scorer:
    """An actor that calls the worker from many threads."""

    def __init__(self):
        from rewardkit.isolate import worker

        worker._ALLOWED = ("time", "json.encoder", "platform")

    def ask(self, target, payload, cpu_seconds=5.0, wall_seconds=60.0):
        from rewardkit.isolate.worker import call

        return tuple(call(target, payload, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds))


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory):
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=str(tmp_path_factory.mktemp("r")),
    )
    yield ray
    ray.shutdown()


def test_sixteen_threads_of_an_actor_get_their_own_results_while_one_call_is_killed(ray_cluster):
    ray = ray_cluster
    scorer = ray.remote(Scorer).options(max_concurrency=16, num_cpus=0).remote()
    encode = "json.encoder:encode_basestring_ascii"
    killed = scorer.ask.remote("time:sleep", 600, wall_seconds=0.3)
    answers = [scorer.ask.remote(encode, f"answer {i}") for i in range(400)]
    assert ray.get(killed, timeout=200) == ("timeout", None, "wall time limit reached")
    assert ray.get(answers, timeout=200) == [("ok", f'"answer {i}"', "") for i in range(400)]
    ray.kill(scorer)
