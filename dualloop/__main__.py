"""``python -m dualloop`` is ``dualloop``."""

import sys


def main() -> None:
    """Run the command line; whoever is interrupted says so by exit code 130, also while it is still being loaded."""
    try:
        from dualloop.cli import main as run  # noqa: PLC0415  that takes half a second, in which people press Ctrl-C

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
