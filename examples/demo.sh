#!/bin/sh
# The main job, end to end, on the packaged sample: no network, no GPU, no verl.
set -eu
PATH="$(cd "$BIN" && pwd):$PATH"
run() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }

run rewardkit prep gsm8k --sample --split all --out demo --overwrite
run rewardkit check demo/train.parquet
run rewardkit check demo/test.parquet
run rewardkit show demo/train.parquet -n 1

printf '\nThe same responses under verl'\''s rule and under ours:\n'
run rewardkit score examples/gsm8k_responses.jsonl --scorer gsm8k
run rewardkit score examples/gsm8k_responses.jsonl --scorer gsm8k --set method=robust \
    --out demo/scored.jsonl --overwrite

printf '\nThe verl command this would launch:\n\n'
printf 'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n'
printf '  data.train_files=%s/demo/train.parquet \\\n' "$PWD"
printf '  data.val_files=%s/demo/test.parquet \\\n' "$PWD"
rewardkit path gsm8k --verl --verl-version 0.9.1 --set method=robust | sed 's/^/  /; s/$/ \\/'
printf '  actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct\n'
