"""`python -m rewardkit` is the `rewardkit` command."""

from rewardkit.cli.main import run

run()
