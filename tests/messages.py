"""Log messages of the library, for tests."""

import logging


class _Kept(logging.Handler):
    def __init__(self, lines):
        super().__init__()
        self.lines = lines

    def emit(self, record):
        self.lines.append(record.getMessage())


PROGRESS = (" so far", " gone", " left")
"""Endings of the lines that say how far an operation is; a slow machine writes them where a fast one does not."""


def without_progress(error):
    """Return the lines of standard error but those of progress."""
    return [line for line in error.splitlines() if not line.endswith(PROGRESS)]


def listen():
    """Return a list to which each message from now on is added, until the end of the test."""
    lines = []
    logger = logging.getLogger("samesense")
    logger.addHandler(_Kept(lines))
    logger.setLevel(logging.INFO)
    return lines


def forget_listeners():
    """Leave the logger as it was, without listeners and without the command line's own handler."""
    logger = logging.getLogger("samesense")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
