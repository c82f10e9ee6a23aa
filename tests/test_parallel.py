"""Batches in other processes give the same results in the same order."""

import json
import os
import signal

import pytest

import rewardkit
from rewardkit.checks import check
from rewardkit.errors import DataError
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.preprocess import prep as prep_module
from rewardkit.preprocess.card_dataset import dataset_from_file


def square(n):
    return n * n, os.getpid()


def fail_at_40(n):
    if n == 40:
        raise ValueError("forty")
    return n


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_with_any_number_of_processes(jobs):
    results = list(in_order(square, range(60), jobs))
    assert [(n, result) for n, (result, _) in results] == [(n, n * n) for n in range(60)]
    others = {pid for _, (_, pid) in results} - {os.getpid()}
    assert bool(others) == (jobs > 1)


def test_an_exception_of_the_work_is_raised_by_the_caller():
    with pytest.raises(ValueError, match="forty"):
        list(in_order(fail_at_40, range(60), 2))


def is_ctrl_c_blocked(_):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_reaches_this_process_and_not_those_that_it_started():
    """A process that is importing modules would print the traceback of its KeyboardInterrupt."""
    results = [blocked for _, blocked in in_order(is_ctrl_c_blocked, range(4), 2, 1)]
    assert results == [False, True, True, True]
    assert not is_ctrl_c_blocked(0)


def test_batches_are_read_only_when_they_are_needed():
    batches_read = []

    def batches():
        for n in range(10_000):
            batches_read.append(n)
            yield n

    results = in_order(square, batches(), 2)
    for _ in range(INLINE_BATCHES + 1):
        next(results)
    results.close()
    assert len(batches_read) < INLINE_BATCHES + 20


def die_once(path):
    if not path.exists():
        path.touch()
        os._exit(9)
    return path.name


def die(_):
    os._exit(9)


@pytest.mark.full
def test_a_batch_whose_process_is_killed_is_tried_again(tmp_path):
    batches = [tmp_path / str(i) for i in range(4)]
    for path in batches[1:]:
        path.touch()
    names = [name for _, name in in_order(die_once, batches, 2, inline_batches=0)]
    assert names == ["0", "1", "2", "3"]


@pytest.mark.full
def test_processes_that_always_die_are_one_clear_error():
    with pytest.raises(DataError, match="killed from outside 3 times"):
        list(in_order(die, range(4), 2, inline_batches=0))


@pytest.mark.full
def test_prep_and_check_give_the_same_result_with_any_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(prep_module, "BATCH_ROWS", 40)
    monkeypatch.setattr(check, "BATCH_ROWS", 40)
    source = tmp_path / "sums.jsonl"
    with source.open("w") as lines:
        for i in range(40 * (INLINE_BATCHES + 9)):
            gold = i + 1 if i % 30 else "x y z"
            lines.write(json.dumps({"question": f"{i}+1?", "answer": f"#### {gold}"}) + "\n")
    results = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.parquet"
        report = rewardkit.prep(
            dataset_from_file(source), out, source=source, template="hash", scorer="math", jobs=jobs
        ).splits[0]
        checked = rewardkit.check(out, jobs=jobs)
        facts = report.dropped, report.read, checked.counts, checked.rows
        results.append((out.read_bytes(), *facts))
    assert results[0] == results[1]
