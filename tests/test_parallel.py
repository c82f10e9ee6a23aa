"""Batches in other processes: the same results in the same order."""

import json
import os

import pytest

import rewardkit
from rewardkit.errors import DataError
from rewardkit.parallel import ALONE, cores, in_order, travels
from rewardkit.preprocess import check, pipeline
from rewardkit.preprocess.user_file import own_dataset
from rewardkit.scorers.gsm8k import score


def square(n):
    return n * n, os.getpid()


def fail_at_40(n):
    if n == 40:
        raise ValueError("forty")
    return n


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_whoever_made_them(jobs):
    found = list(in_order(square, range(60), jobs))
    assert [(n, result) for n, (result, _) in found] == [(n, n * n) for n in range(60)]
    others = {pid for _, (_, pid) in found} - {os.getpid()}
    assert bool(others) == (jobs > 1)


def test_a_small_job_starts_no_process():
    assert {pid for _, (_, pid) in in_order(square, range(ALONE), 8)} == {os.getpid()}


def test_what_the_work_raises_is_raised_here():
    with pytest.raises(ValueError, match="forty"):
        list(in_order(fail_at_40, range(60), 2))


def test_batches_are_taken_as_they_are_needed():
    taken = []

    def batches():
        for n in range(10_000):
            taken.append(n)
            yield n

    results = in_order(square, batches(), 2)
    for _ in range(ALONE + 1):
        next(results)
    results.close()
    assert len(taken) < ALONE + 20


def die_once(path):
    if not path.exists():
        path.touch()
        os._exit(9)
    return path.name


def die(_):
    os._exit(9)


@pytest.mark.full
def test_a_batch_whose_process_is_ended_from_outside_is_tried_again(tmp_path):
    batches = [tmp_path / str(i) for i in range(4)]
    for path in batches[1:]:
        path.touch()
    assert [name for _, name in in_order(die_once, batches, 2, alone=0)] == ["0", "1", "2", "3"]


@pytest.mark.full
def test_processes_that_are_always_ended_are_one_clear_error():
    with pytest.raises(DataError, match="ended from outside, 3 times"):
        list(in_order(die, range(4), 2, alone=0))


def test_functions_of_a_user_s_file_do_not_travel(tmp_path):
    from rewardkit.scorers.load import load_scorer

    (tmp_path / "mine.py").write_text("def score(response, ground_truth, extra_info=None): ...")
    assert travels(score)
    assert not travels(load_scorer(f"{tmp_path}/mine.py:score"))
    assert cores() >= 1


def test_prep_and_check_say_the_same_with_any_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "BATCH_ROWS", 40)
    monkeypatch.setattr(check, "BATCH_ROWS", 40)
    source = tmp_path / "sums.jsonl"
    with source.open("w") as lines:
        for i in range(40 * (ALONE + 9)):
            gold = i + 1 if i % 30 else "x y z"
            lines.write(json.dumps({"question": f"{i}+1?", "answer": f"#### {gold}"}) + "\n")
    found = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.parquet"
        report = rewardkit.prep(
            own_dataset(source), out, source=source, template="hash", scorer="math", jobs=jobs
        ).splits[0]
        checked = rewardkit.check(out, jobs=jobs)
        found.append((out.read_bytes(), report.dropped, report.read, checked.counts, checked.rows))
    assert found[0] == found[1]
