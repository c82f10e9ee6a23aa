"""The recorder in the threads of Ray actors, as verl's reward workers have them."""

from __future__ import annotations

import time

import pytest

from rewardkit.recorder.read import RewardTail
from tests.integration.conftest import VERL

#: These tests are about Ray, so that the newer one is enough.
pytestmark = pytest.mark.skipif(VERL.startswith("0.5"), reason="tested with the Ray of verl 0.9")

THREADS, CALLS = 16, 500


class Scorer:
    """An actor that scores in many threads, as a reward worker of verl does."""

    def score(self, folder, first):
        from rewardkit.scorers.gsm8k import compute_score

        for i in range(first, first + CALLS):
            info = {"index": i // 4, "split": "train", "question": "How many eggs are left over?"}
            compute_score("openai/gsm8k", f"#### {i % 10}", "3", info, record=folder)


def count_of(records):
    slots = records.slots if records else ()
    return sum(slot.count(is_validation=False) for slot in slots)


def test_the_records_of_two_actors_with_sixteen_threads_add_up(private_ray, tmp_path):
    actor = private_ray.remote(Scorer).options(max_concurrency=THREADS, num_cpus=0)
    scorers = [actor.remote(), actor.remote()]
    calls = [
        scorers[i % 2].score.remote(str(tmp_path), i * CALLS) for i in range(2 * THREADS)
    ]  # fmt: skip
    private_ray.get(calls, timeout=200)
    tail = RewardTail(tmp_path)
    count = 2 * THREADS * CALLS
    records, end = None, time.monotonic() + 100
    while count_of(records) < count and time.monotonic() < end:
        time.sleep(0.2)
        records = tail.poll() or records
    totals = [slot.sources["openai/gsm8k", False] for slot in records.slots]
    assert records.processes == 2
    assert records.dropped == records.unusable == records.unread == 0
    assert sum(total.count for total in totals) == count
    assert sum(total.values["score"].sum for total in totals) == count / 10
    assert sum(total.seconds.count for total in totals) == count
