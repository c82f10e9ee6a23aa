"""The `rewardkit` command, also as `python -m rewardkit`."""

import sys


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback, also while its modules are imported."""
    try:
        from rewardkit.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
