"""``python -m dualloop`` is ``dualloop``."""

from dualloop.cli import main

if __name__ == "__main__":
    main()
