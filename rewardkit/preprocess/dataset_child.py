"""The process in which a plug-in's dataset is imported first, under a deadline."""

from __future__ import annotations

from rewardkit.errors import RewardkitError
from rewardkit.isolate.child import Channel
from rewardkit.preprocess.load import load_dataset
from rewardkit.registry import import_target


def serve(channel: Channel) -> None:
    """Report whether a dataset loads: "", or the error."""
    name, target, seconds = channel.receive()
    problem = ""
    with channel.load_deadline(seconds):
        try:
            if target:
                import_target(target, name)
            else:
                load_dataset(name)
        except RewardkitError as error:
            problem = str(error)
    channel.send(problem)
