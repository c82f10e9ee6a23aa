"""The killable worker runs in a threaded Ray actor, as rewards do in verl."""

from __future__ import annotations


class Scorer:
    """An actor that calls the worker from many threads."""

    def __init__(self):
        from rewardkit.isolate import worker

        worker._ALLOWED = ("time", "json.encoder", "platform")

    def ask(self, target, payload, cpu_seconds=5.0, wall_seconds=60.0):
        from rewardkit.isolate.worker import call

        return tuple(call(target, payload, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds))


def test_sixteen_threads_of_an_actor_get_their_own_results_while_one_call_is_killed(private_ray):
    scorer = private_ray.remote(Scorer).options(max_concurrency=16, num_cpus=0).remote()
    encode = "json.encoder:encode_basestring_ascii"
    killed = scorer.ask.remote("time:sleep", 600, wall_seconds=0.3)
    answers = [scorer.ask.remote(encode, f"answer {i}") for i in range(400)]
    assert private_ray.get(killed, timeout=200) == ("timeout", None, "wall time limit reached")
    assert private_ray.get(answers, timeout=200) == [
        ("ok", f'"answer {i}"', "") for i in range(400)
    ]
    private_ray.kill(scorer)
