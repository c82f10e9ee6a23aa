#!/bin/sh
# The main workflow on the packaged sample, without a network, a GPU or verl.
set -eu
PATH="$(cd "$BIN" && pwd):$PATH"
run() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }

run rewardkit prep gsm8k --sample --split all --out demo --overwrite
run rewardkit check demo/train.parquet
run rewardkit check demo/test.parquet
run rewardkit show demo/train.parquet -n 1

printf '\nThe same responses scored by verl'\''s rule and by ours:\n'
run rewardkit score examples/gsm8k_responses.jsonl --scorer gsm8k
run rewardkit score examples/gsm8k_responses.jsonl --scorer gsm8k --set method=robust \
    --out demo/scored.jsonl --overwrite

run rewardkit score demo/scored.jsonl --html demo/report.html --overwrite

printf '\nThe command of a run, and the log of a finished one:\n'
run rewardkit train qwen2.5-0.5b-ppo-gsm8k --dry-run --verl-version 0.9.1 \
    --set "data.train=$PWD/demo/train.parquet" --set "data.val=$PWD/demo/test.parquet"
run rewardkit logs examples/train.log
