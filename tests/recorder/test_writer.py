"""The recorder in the reward's process: nothing is lost, and nothing of it reaches the reward."""

import json

from rewardkit.recorder.writer import Recorder, recorder_of


def call(recorder, score=1.0, response="#### 18", **changes):
    arguments = {
        "response": response,
        "data_source": "gsm8k",
        "ground_truth": "18",
        "extra_info": {"split": "train", "index": 3},
        "seconds": 0.25,
        **changes,
    }
    recorder.add({"score": score, "acc": 1.0, "pred": "18"}, **arguments)


def lines(folder):
    return [
        json.loads(line)
        for file in sorted(folder.glob("rewards-*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def test_a_line_holds_count_sum_squares_least_and_most_of_each_number(tmp_path):
    recorder = Recorder(str(tmp_path), clock=iter(range(100, 200)).__next__)
    for score in (1.0, 0.0, -0.5):
        call(recorder, score)
    recorder.flush()
    header, interval, samples = lines(tmp_path)
    assert header["rewardkit_rewards"] == 1
    [source] = interval["sources"]
    assert source["values"]["score"] == [3, 0.5, 1.25, -0.5, 1.0]
    assert source["values"]["acc"] == [3, 3.0, 3.0, 1.0, 1.0]
    assert source["seconds"] == [3, 0.75, 0.1875, 0.25, 0.25]
    assert source["characters"][:2] == [3, 21]
    assert {sample["response"] for sample in samples["samples"]} == {"#### 18"}


def test_a_process_has_one_recorder_for_a_folder(tmp_path):
    assert recorder_of(str(tmp_path)) is recorder_of(str(tmp_path))
