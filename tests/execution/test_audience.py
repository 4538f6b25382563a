"""Python users see progress without a logger: bars on a terminal and in a notebook, lines elsewhere; and a switch."""

import logging
import multiprocessing
import os
import struct
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import samesense
from samesense.encoder.distinct import encode_distinct
from samesense.execution import audience, progress
from samesense.execution.progress import progress_bar, stage
from samesense.inference.models.model import Model
from tests.execution.test_progress import Clock, Terminal
from tests.messages import forget_listeners


@pytest.fixture
def clock(monkeypatch):
    """Provide a clock that the test advances, for a user of the library without logger or switch."""
    forget_listeners()
    clock = Clock()
    monkeypatch.setattr(progress, "now", clock)
    monkeypatch.setattr(progress, "TICK", 1e9)
    monkeypatch.setattr(progress, "PATIENCE", 0.5)
    monkeypatch.setattr(progress, "_heard", clock.at)
    monkeypatch.setattr(audience, "_switch", None)
    for switch in audience.SWITCHES:
        monkeypatch.delenv(switch, raising=False)
    return clock


def long_run(clock):
    with stage("loading"), progress_bar("train", "step", 3) as bar:
        clock.wait(30)
        bar.update()


def test_a_script_is_never_silent_for_ten_seconds(clock, capsys):
    long_run(clock)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "samesense: train: 0 of 3 steps, 0:08 gone"
    assert len(lines) == 4


def test_what_takes_seconds_says_nothing_in_a_script(clock, capsys):
    with stage("train"):
        clock.wait(7)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    long_run(clock)
    assert "train:" in screen.getvalue() and "1/3" in screen.getvalue()


@pytest.mark.parametrize("switch", [*audience.SWITCHES, "call", "level", "worker"])
def test_it_can_be_switched_off(clock, capsys, monkeypatch, switch):
    if switch == "call":
        samesense.disable_progress_bars()
    elif switch == "level":
        logging.getLogger("samesense").setLevel(logging.WARNING)
    elif switch == "worker":
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(pid=1))
    else:
        monkeypatch.setenv(switch, "1")
    long_run(clock)
    assert capsys.readouterr().err == ""
    if switch in audience.SWITCHES:
        samesense.enable_progress_bars()
        long_run(clock)
        assert capsys.readouterr().err


def test_a_call_of_a_model_has_a_bar_for_a_person_alone(clock, capsys, monkeypatch):
    def slow(texts):
        clock.wait(20)
        return np.ones((len(texts), 2), dtype=np.float32)

    encoder = SimpleNamespace(encode=lambda texts, **options: encode_distinct(texts, slow, 2, **options), name="slow")
    model = Model(encoder)
    texts = [f"text {n}" for n in range(1000)]
    model.encode(texts)
    assert capsys.readouterr().err == ""
    model.encode(texts, show_progress_bar=True)
    assert "encode: 0 of 1,000 texts" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    model.encode(texts, show_progress_bar=False)
    thread = threading.Thread(target=model.encode, args=(texts,))
    thread.start()
    thread.join()
    assert screen.getvalue() == ""
    model.encode(texts)
    assert "1000/1000" in screen.getvalue() or "512/1000" in screen.getvalue()


def test_a_notebook_without_ipywidgets_is_not_warned(clock, monkeypatch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert audience.is_interactive()
    for name in [name for name in sys.modules if name.startswith("tqdm.auto")]:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert audience.bar_class()


@pytest.mark.posix
@pytest.mark.parametrize("size", [(40, 100), (0, 0)], ids=["terminal", "of no size"])
def test_a_real_terminal_shows_one_live_line(tmp_path, size):
    import fcntl
    import pty
    import termios

    script = tmp_path / "user.py"
    script.write_text("""if True:
        import time
        from samesense.execution.progress import progress_bar, stage
        with stage("loading"), progress_bar("train", "step", 2) as bar:
            time.sleep(1.2)
            bar.update(2)
    """)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in audience.SWITCHES}
    done = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=theirs, env=environment, cwd=tmp_path
    )
    os.close(theirs)
    pieces = []
    while piece := _read(ours):
        pieces.append(piece)
    done.communicate()
    printed = b"".join(pieces).decode()
    assert "train" in printed and "2/2" in printed
    assert printed.count("\n") == 1


def _read(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux raises where the other end is closed
        return b""
