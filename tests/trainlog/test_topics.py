"""Topics, validations and step times are the same whatever a release calls them."""

import pytest

from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.topics import step_seconds, validations
from rewardkit.trainlog.training_run import FULL, V1
from tests.trainlog.runs import make_run


def test_a_validation_uses_the_n_of_all_prompts_not_of_repeated_ones():
    row = {
        "val-core/s/acc/mean@2": 0.0,
        "val-aux/s/acc/mean@1": 0.12,
        "val-aux/s/reward/mean@1": 0.7,
        "val-aux/t/acc/mean@4": 0.5,
        "val-aux/t/acc/mean@3": 0.1,
        "val-core/t/acc/mean@8": 0.9,
    }
    assert validations(make_run({1: row})) == {"s": [(1, 0.12)], "t": [(1, 0.1)]}
    run = make_run({1: row}, actor_rollout_ref__rollout__val_kwargs__n=4)
    assert validations(run) == {"s": [(1, 0.12)], "t": [(1, 0.5)]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"testing": 20.0}, 120.0),  # from 0.6.1 on
        ({"testing": 200.0, "save_checkpoint": 50.0}, 350.0),  # 0.6.1 and 0.7.0
        ({"save_checkpoint": 50.0}, 150.0),
        ({"gen": 40.0, "testing": 20.0, "save_checkpoint": 50.0}, 120.0),  # from 0.7.1 on
        ({"gen": 20.0, "testing": 20.0, "save_checkpoint": 50.0}, 100.0),  # up to 0.5
    ],
)
def test_a_step_includes_phases_that_releases_time_outside_it(parts, expected):
    row = {"gen": 90.0, "adv": 5.0, "step": 100.0} | parts
    run = make_run({1: {f"timing_s/{name}": value for name, value in row.items()}})
    assert step_seconds(run) == [(1, expected)]
    summary = summarize(run)
    assert summary.seconds == expected
    assert sum(summary.phases.values()) == pytest.approx(1)


@pytest.mark.parametrize(("era", "note"), [(FULL, ""), (V1, " (0.9: or the batch's longest)")])
def test_the_title_of_a_clip_ratio_says_what_it_is_relative_to(era, note):
    row = {"response_length/clip_ratio": 0.1, "prompt_length/clip_ratio": 0.1}
    titles = [curve.title for curve in summarize(make_run({1: row}, era=era)).curves]
    assert titles == [f"responses cut{note}", f"prompts cut{note}"]
