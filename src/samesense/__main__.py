"""The ``samesense`` program, also as ``python -m samesense``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line.

    Its modules are imported here, since Ctrl-C during an import at the head of a file would print a traceback.
    """
    try:
        from samesense.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("samesense: interrupted. Nothing was begun: give the same command again.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
