"""The section `reward:` of a recipe."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PrivateAttr

from rewardkit.launch.recipe_types import Count, Section, Text


class RewardGuard(Section):
    """How a custom reward is guarded; `rewardkit guard --help` says what each setting does.

    Attributes:
        seconds: timeout per call, in seconds.
        cpu_seconds: limit of CPU time per call, in seconds; 0 for none.
        memory_mb: memory for calls per process, in MiB; 0 for no limit.
        workers: maximum number of processes for each process of verl that scores.
        wrong_score: score of a failed call; by default the lowest of a wrong response.
        right_score: lowest score of a right answer; by default what the first golds get.
        keys: further numeric keys of its results, which a trial on the first rows did not show.
        on_failure: what to do when the reward fails too often.
        stop_share: share of failed calls above which it fails too often.
    """

    seconds: float = Field(default=5.0, gt=0, le=86_400)
    cpu_seconds: float = Field(default=0.0, ge=0, le=86_400)
    memory_mb: int = Field(default=8192, ge=0)
    workers: Count = 4
    wrong_score: float | None = Field(default=None, allow_inf_nan=False)
    right_score: float | None = Field(default=None, allow_inf_nan=False)
    keys: list[Text] = Field(default_factory=list)
    on_failure: Literal["stop", "score"] = "stop"
    stop_share: float = Field(default=0.5, ge=0, le=1)


class RewardSettings(Section):
    """The reward function.

    Attributes:
        scorer: the name of a scorer, `my_reward.py:compute_score`, or `verl` for verl's own scorer
            of each data_source.
        options: the scorer's options.
        record: folder in which the run records its rewards, on storage that every node sees; a
            relative path starts in the folder of the launch.
        guard: runs a custom scorer in child processes with deadlines; an empty mapping for the
            defaults.
    """

    scorer: str = "auto"
    options: dict[str, Any] = Field(default_factory=dict)
    record: Text | None = None
    guard: RewardGuard | None = None
    _guard_file: str = PrivateAttr("")

    @property
    def guard_file(self) -> str:
        """The file that guards the scorer, once `reward_guard.guard_reward` has written it."""
        return self._guard_file

    def with_guard_file(self, path: str) -> RewardSettings:
        """Return a copy that names the file that guards the scorer."""
        copy = self.model_copy()
        copy._guard_file = path  # noqa: SLF001 - of this class
        return copy
