"""Processes that end, without any clean-up, in the middle of what they write."""

import os
import sys

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir", "shutil.rmtree")


def dies_at(step, change, within=""):
    """Make a change in a child that ends at its file operation number ``step``; return whether it ended there.

    Only operations on paths that hold ``within`` are counted.
    """
    child = os.fork()
    if child == 0:
        steps = 0

        def count(event, arguments):
            nonlocal steps
            if event in EVENTS and str(within) in str(arguments[0]):
                steps += 1
                if steps == step:
                    os._exit(9)

        sys.addaudithook(count)
        change()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), code
    return code == 9
