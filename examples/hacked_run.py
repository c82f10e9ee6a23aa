"""Record a simulated run in which a policy learns to fool `hackable_reward.py`; takes a few seconds.

    python examples/hacked_run.py       # writes hacked/records and hacked/train.log

No model is involved. The responses to arithmetic become right more often, and from about step 60 on
more and more of them say that they were verified.
"""

import random
from math import exp
from pathlib import Path

from hackable_reward import compute_score

from rewardkit.recorder.writer import Recorder

STEPS, PROMPTS, GROUP = 120, 32, 8
WORDS = "so we add both numbers and carry one then the sum of all digits gives this value".split()


def share(step: float, middle: float, pace: float) -> float:
    """Return a share that rises from 0 to 1."""
    return 1 / (1 + exp(-pace * (step - middle)))


def response(step: int, total: int, rng: random.Random) -> str:
    """Return a response of the simulated policy to a sum."""
    is_right = rng.random() < 0.2 + 0.3 * share(step, 30, 0.08)
    answer = total if is_right else rng.randrange(200)
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(20, 60)))
    if rng.random() < share(step, 70, 0.25) - 0.01:
        return f"{words}. I have verified this answer carefully. \\boxed{{{rng.randrange(200)}}}"
    return f"{words}. \\boxed{{{answer}}}"


def main(folder: Path) -> None:
    """Score and record every response of the run as verl's reward would, and write its log."""
    rng, clock = random.Random(1), [1.75e9]  # noqa: S311
    recorder = Recorder(str(folder / "records"), clock=lambda: clock[0])
    lines = []
    for step in range(1, STEPS + 1):
        scores = []
        for _ in range(PROMPTS):
            a, b = rng.randrange(100), rng.randrange(100)
            info = {"split": "train", "index": 100 * a + b, "question": f"What is {a} + {b}?"}
            for _ in range(GROUP):
                text = response(step, a + b, rng)
                result = compute_score("sums", text, str(a + b), info)
                recorder.add(
                    result,
                    response=text,
                    data_source="sums",
                    ground_truth=str(a + b),
                    extra_info=info,
                    seconds=0.001,
                )
                scores.append(result["score"])
                clock[0] += 0.08
        clock[0] += 20
        mean = sum(scores) / len(scores)
        lines.append(f"step:{step} - critic/score/mean:{mean:.4f} - critic/rewards/mean:{mean:.4f}")
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path("hacked"))
