"""A planted secret goes through every command: as text, as JSON, in files, and in tracebacks.

CANARY is a variable of the environment and an option (`--set api_key=`). SHAPED is known to nobody:
a reward's file has it, and its exceptions say it in the query of a URL and as a password.
"""

import json
import re
from itertools import product

import pytest

from rewardkit.cli.main import PANELS

CANARY, SHAPED = "Zq7canaryValue42", "Qx8shapedValue99"
SECRETS = (CANARY.encode(), SHAPED.encode())
URL = f"http://127.0.0.1:9/v1?key={CANARY}"

TEXT = f"""f"401 {{os.environ.get('MY_API_TOKEN')}} {{api_key}} https://h/v1?key={SHAPED} password={SHAPED}\""""
FILES = {
    "r.py": f"""
import os
def compute_score(data_source, solution_str, ground_truth, extra_info=None, api_key="", **kwargs):
    raise ValueError({TEXT})
""",
    "some.py": f"""
import os
def compute_score(data_source, solution_str, ground_truth, extra_info=None, api_key="", **kwargs):
    if str(ground_truth) not in solution_str or len(solution_str) % 2:
        raise ValueError({TEXT})
    return 1.0
""",
    "bad.py": f"import os\napi_key = 'x'\nraise RuntimeError({TEXT})\n",
    "log.txt": f"step:1 - critic/score/mean:0.5 - actor/entropy:0.3\nOPENAI_KEY={SHAPED} {CANARY}\n"
    f"step:2 - critic/score/mean:0.6 - actor/entropy:0.3\nRuntimeError: api_key={SHAPED} {CANARY}\n",
    "reward.yaml": f"scorer: r.py:compute_score\noptions: {{api_key: {CANARY}}}\n",
    "recipe.yaml": f"""
name: tiny
algorithm: grpo
model: /m
devices: cpu
devices_per_node: 1
data: {{train: train.parquet, val: train.parquet}}
reward: {{scorer: "r.py:compute_score", options: {{api_key: {CANARY}}}}}
cluster: {{target: script}}
""",
    "run.sh": f"export WANDB_API_KEY={CANARY}\npython3 -m verl.trainer.main_ppo data.train_files=a "
    f"data.val_files=b +trainer.api_key={SHAPED}\n",
}

FILES["guarded.yaml"] = (
    FILES["recipe.yaml"].replace('"r.py:', '"some.py:').replace("}}", "}, guard: {wrong_score: 0}}")
)

#: Words that stand for secrets in the calls.
WORDS = {"SECRET": f"--set api_key={CANARY}", "CANARY": CANARY, "SHAPED": SHAPED, "URL": URL}

#: What each command gets; `--json` is added where it is known. Prepared files are train.parquet,
#: responses.jsonl and scored.jsonl.
CALLS = {
    "prep": [
        "gsm8k --sample --out p.parquet",
        "bad.py:to_problem --out q.parquet",
        "train.parquet --template URL --out q.parquet",
    ],
    "check": [
        "train.parquet --scorer r.py:compute_score SECRET --html c.html",
        "train.parquet --scorer bad.py:compute_score --drop-bad d.parquet",
        "guarded.yaml --verl-version 0.9",
    ],
    "mix": ["train.parquet URL:2 --out m.parquet"],
    "show": ["train.parquet -n 1", "URL"],
    "path": ["r.py --verl SECRET", "judge --verl --set base_url=URL", "bad.py --verl"],
    "explain": ["--scorer r.py:compute_score --gold 1 --response text.txt SECRET"],
    "compose": ["reward.yaml --out w.py"],
    "guard": [
        "r.py:compute_score SECRET --keys score --wrong-score 0 --out g.py",
        "some.py:compute_score SECRET --wrong-score 0 --out h.py",
    ],
    "audit": ["r.py:compute_score SECRET --html a.html", "judge --set base_url=URL"],
    "reward-server": ["bad.py:compute_score", "r.py:compute_score SECRET --set x"],
    "new": ["dataset a?key=SHAPED"],
    "score": [
        "responses.jsonl --scorer r.py:compute_score SECRET --out s.jsonl",
        "responses.jsonl --scorer some.py:compute_score SECRET --out t.jsonl",
        "responses.jsonl --scorer judge --set base_url=URL --out u.jsonl",
        "responses.jsonl --scorer bad.py:compute_score",
        "scored.jsonl --html r.html",
        "URL --html r2.html",
        "responses.jsonl --scorer r.py:compute_score --scorer some.py:compute_score --set-b api_key=CANARY",
        "responses.jsonl --scorer gsm8k --scorer bad.py:compute_score",
    ],
    "select": ["scored.jsonl --train URL --pass-rate 0:1 --out v.parquet"],
    "recipes": ["import run.sh --out n.yaml", "show recipe.yaml", "list"],
    "train": [
        "recipe.yaml --dry-run --verl-version 0.9",
        "guarded.yaml --no-check --out o2 --verl-version 0.9",
    ],
    "logs": ["log.txt --html l.html", "log.txt", "URL"],
    "eval": [
        "run train.parquet --base-url URL --model m --out x.jsonl",
        "run train.parquet --base-url http://me:CANARY@127.0.0.1:9/v1 --model m --out x.jsonl",
        "run train.parquet --base-url http://me:CANARY@127.0.0.1:99999999/v1 --model m --out x.jsonl",
        'run train.parquet --base-url http://h/v1 --extra-body {"api_key":"CANARY" --model m --out x.jsonl',
        "responses train.parquet responses.jsonl --scorer r.py:compute_score SECRET",
        "compare URL scored.jsonl",
        "merge URL out",
        "merge checkpoint out --recipe recipe.yaml",
    ],
    "list": ["", "URL"],
    "glossary": ["URL"],
    "doctor": [""],
}


@pytest.fixture
def folder(run, tmp_path):
    """Return a folder with the prepared files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "text.txt").write_text("It is 1.")
    (tmp_path / "checkpoint").mkdir()
    done = run("prep", "gsm8k", "--sample", "--out", "train.parquet")
    assert done.returncode == 0, done.stderr
    rows = [
        {"response": f"{'x' * i} {i}", "ground_truth": str(i), "data_source": "openai/gsm8k"}
        for i in range(12)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "responses.jsonl").write_text(text)
    scored = "".join(json.dumps(row | {"score": 1.0, "acc": True}) + "\n" for row in rows)
    (tmp_path / "scored.jsonl").write_text(scored)
    return tmp_path


def leaks(folder, done, inputs=FILES):
    """Return where a planted secret is: in a stream, or in a file that is not an input."""
    streams = {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in inputs and path.suffix != ".pyc"
    }
    return [
        f"{name}: {text[max(text.find(secret) - 60, 0) :][:120]!r}"
        for name, text in (streams | files).items()
        for secret in SECRETS
        if secret in text
    ]


def test_every_command_has_a_call():
    assert set(CALLS) == {name for modules in PANELS.values() for name in modules}


#: As text, as JSON, and with tracebacks.
MODES = {"text": ((), ""), "json": (("--json",), ""), "debug": ((), "1")}
SLOW = {"audit", "check", "guard", "train"}
QUICK = [(command, "text") for command in CALLS if command not in SLOW]
FULL = [pytest.param(*c, marks=pytest.mark.full) for c in product(CALLS, MODES) if c not in QUICK]


@pytest.mark.parametrize(("command", "mode"), QUICK + FULL)
def test_no_planted_secret_leaves_a_command(run, folder, command, mode):
    more, debug = MODES[mode]
    for call in CALLS[command]:
        words = re.sub("[A-Z]{3,}", lambda name: WORDS[name[0]], call).split()
        done = run(command, *words, *more, MY_API_TOKEN=CANARY, REWARDKIT_DEBUG=debug)
        assert done.returncode != 70, done.stderr
        assert more or "Usage: " not in done.stderr, done.stderr  # a call that proves nothing
        assert leaks(folder, done) == [], call
