"""Settings of a process: how its threads wait, and what memory it keeps. Each in a process of its own."""

import os
import subprocess
import sys
from threading import Event, Thread

import pytest
import torch

from samesense.execution.threads import KEEP, SPIN, TOKENIZERS, serial_tokenizer, torch_threads

SLEEPING = """
import os
from samesense.cli.main import main
try:
    main(["--version"])
finally:
    print(os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT"))
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["PASSIVE", SPIN]),
        ({"GOMP_SPINCOUNT": "7"}, ["PASSIVE", "7"]),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, ["ACTIVE", "None"]),
    ],
)
def test_threads_of_every_command_sleep_soon_while_they_wait(settings, expected):
    """Said before torch is loaded, in a process of its own; what the user has set stays."""
    waits = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {name: value for name, value in os.environ.items() if name not in waits} | settings
    words = [sys.executable, "-c", SLEEPING]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-2:] == expected


@pytest.mark.parametrize("before", [None, "true"])
def test_texts_are_tokenised_on_one_thread_only_inside(before, monkeypatch):
    monkeypatch.delenv(TOKENIZERS, raising=False)
    if before is not None:
        monkeypatch.setenv(TOKENIZERS, before)
    with serial_tokenizer(False):
        assert os.environ.get(TOKENIZERS) == before
    with pytest.raises(KeyError), serial_tokenizer(True):
        assert os.environ[TOKENIZERS] == "false"
        raise KeyError
    assert os.environ.get(TOKENIZERS) == before


KEEPING = """
import os, sys
from samesense.cli.main import main
try:
    main([sys.argv[1], "nosuch.tsv"])
finally:
    print(*(os.environ.get(name) for name in sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("command", "settings", "expected"),
    [
        ("train", {}, [str(variable) for variable, _, _ in KEEP.values()]),
        ("encode", {}, ["None", "None"]),
        ("train", {"MALLOC_MMAP_MAX_": "7"}, ["7", "None"]),
    ],
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_commands_that_train_keep_the_memory_that_is_freed(command, settings, expected):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | settings
    words = [sys.executable, "-c", KEEPING, command, *KEEP]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.split()[-2:] == expected


FAULTS = """
import resource, torch
from samesense.execution.threads import keep_freed_memory
keep_freed_memory()
for _ in range(10):
    torch.ones(2**22)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(2**22)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize(("settings", "retained"), [({}, True), ({"MALLOC_MMAP_MAX_": "65536"}, False)])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_freed_memory_is_not_cleared_again(settings, retained):
    """A tensor of 16 MiB has 4,096 pages, which the kernel clears whenever they come back to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | settings
    ran = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True)
    assert (int(ran.stdout) < 4096) is retained


def test_threads_that_set_how_many_compute_leave_as_many_as_before():
    """A thread that torch has not seen yet begins with what another one has set for the time being."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    entered = Event()
    left = Event()

    def first():
        with torch_threads(1):
            Thread(target=second).start()
            entered.wait(timeout=0.3)

    def second():
        with torch_threads(1):
            entered.set()
            with torch_threads(2):
                pass
            assert torch.get_num_threads() == 1
        counts.append(torch.get_num_threads())
        left.set()

    counts = []
    try:
        Thread(target=first).start()
        assert left.wait(timeout=60)
        new = Thread(target=lambda: counts.append(torch.get_num_threads()))
        new.start()
        new.join()
        assert counts == [3, 3]
    finally:
        torch.set_num_threads(before)
