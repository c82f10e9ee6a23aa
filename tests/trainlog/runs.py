"""Small runs and logs for tests."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result

from rewardkit.cli import logs
from rewardkit.trainlog.training_run import TableBuilder

app = typer.Typer()
app.command()(logs.command)


def run_logs(*arguments: object) -> Result:
    """Run `rewardkit logs`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def make_run(rows, name="run", era="", **config):
    """Return a run of rows by step; `data__n=8` is a setting `data.n`."""
    builder = TableBuilder(config={key.replace("__", "."): value for key, value in config.items()})
    for step, row in rows.items() if isinstance(rows, dict) else rows:
        builder.add(step, row, "here")
    return builder.run(name=name, path=f"{name}.log", source="console", era=era)
