"""The recorder in the threads of Ray actors, as verl's reward workers have them."""

from __future__ import annotations

from rewardkit.trainlog.reward_files import read_rewards

#: These tests are about Ray, so that the newer one is enough.
THREADS, CALLS = 16, 500


class Scorer:
    """An actor that scores in many threads, as a reward worker of verl does."""

    def score(self, folder, first):
        from rewardkit.scorers.gsm8k import compute_score

        for i in range(first, first + CALLS):
            info = {"index": i // 4, "split": "train", "question": "How many eggs are left over?"}
            compute_score("openai/gsm8k", f"#### {i % 10}", "3", info, record=folder)


def test_the_records_of_two_actors_with_sixteen_threads_add_up(private_ray, tmp_path):
    actor = private_ray.remote(Scorer).options(max_concurrency=THREADS, num_cpus=0)
    scorers = [actor.remote(), actor.remote()]
    calls = [
        scorers[i % 2].score.remote(str(tmp_path), i * CALLS) for i in range(2 * THREADS)
    ]  # fmt: skip
    private_ray.get(calls, timeout=200)
    records = read_rewards(tmp_path)
    count = 2 * THREADS * CALLS
    totals = [slot.sources["openai/gsm8k", False] for slot in records.slots]
    assert records.processes == 2
    assert records.lost == records.unread == 0
    assert sum(sums.count for sums in totals) == count
    assert sum(sums.totals["score"].sum for sums in totals) == count / 10
    assert sum(sums.totals["seconds"].count for sums in totals) == count
