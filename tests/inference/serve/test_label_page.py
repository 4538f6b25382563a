"""The page on which a person labels: over HTTP, and by keyboard in a browser where there is one."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import samesense
from samesense.errors import OutputError
from samesense.execution import progress
from samesense.inference.labelling import file as label_file
from samesense.inference.labelling.app import build_app
from samesense.inference.labelling.desk import Desk
from samesense.inference.labelling.file import open_labels
from samesense.inference.serve.http.pages import page_of
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.traffic import Traffic
from tests.inference.serve.browser import CHROMIUM, browser
from tests.inference.serve.toy import listening

PAIRS = [("<img src=x onerror=alert(1)>", "a & b"), ("one", "two"), ("three", "four")]
PAGE = page_of("label.html")


@contextmanager
def labelling(path, pairs=PAIRS, scale="0-5"):
    """A page on a free port, and how to call it."""
    with open_labels(path, f"person, {scale}") as labels:
        traffic = Traffic(Limits())
        with listening(build_app(Desk(pairs, labels, scale), traffic), traffic) as page:
            yield page


def rows(path):
    """The labels; a file without one does not stay."""
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()[1:]] if path.exists() else []


def test_pairs_are_labelled_skipped_and_taken_back(tmp_path):
    path = tmp_path / "labels.tsv"
    with labelling(path) as page:
        _, state, _ = page.call("GET", "/state")
        assert state["pair"] == {"id": 1, "texts": list(PAIRS[0])}
        assert [(choice["key"], choice["value"]) for choice in state["scale"]] == [
            (str(n), n) for n in range(5, -1, -1)
        ]
        assert (state["done"], state["total"], state["skipped"], "undo" in state) == (0, 3, 0, False)
        state = page.post("/label", {"pair": 1, "score": 4})[1]
        assert rows(path) == [(*PAIRS[0], "4", "person, 0-5")], "on disk when it is answered"
        assert (state["pair"]["id"], state["done"], state["undo"]) == (2, 1, 1)
        state = page.post("/skip", {"pair": 2})[1]
        assert (state["pair"]["id"], state["skipped"]) == (3, 1)
        assert page.post("/label", {"pair": 3, "score": 0})[1]["pair"]["id"] == 2
        state = page.post("/undo", {"undone": 3})[1]
        assert (state["pair"]["id"], state["done"], len(rows(path))) == (3, 1, 1)
        page.post("/label", {"pair": 3, "score": 5})
        state = page.post("/label", {"pair": 2, "score": 1})[1]
        assert (state["done"], "pair" in state, state["skipped"]) == (3, False, 0)
        assert page.post("/label", {"pair": 2, "score": 1})[0] == 409
    assert [row[2] for row in rows(path)] == ["4", "5", "1"]
    assert samesense.read(path).labels == [4, 5, 1]


def test_it_goes_on_where_it_was_left_and_earlier_labels_stay(tmp_path):
    path = tmp_path / "labels.tsv"
    with labelling(path, scale="yes-no") as page:
        state = page.call("GET", "/state")[1]
        assert [(choice["key"], choice["value"]) for choice in state["scale"]] == [("y", 1), ("n", 0)]
        page.post("/label", {"pair": 1, "score": 1})
    with labelling(path, scale="yes-no") as page:
        state = page.call("GET", "/state")[1]
        assert (state["done"], state["pair"]["id"], "undo" in state) == (1, 2, False)
        assert page.post("/undo", {"undone": 1})[0] == 409
        with pytest.raises(OutputError, match="one writer at a time"), labelling(path):
            pass
    assert len(rows(path)) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/label", {"pair": 2, "score": 1}, 409),
        ("/label", {"pair": 1, "score": 6}, 400),
        ("/undo", {"undone": 1}, 409),
        ("/label", {"pair": 1, "score": 2.5}, 400),
        ("/label", {"pair": 1, "score": True}, 400),
        ("/skip", {}, 400),
        ("/label", {"pair": 1}, 400),
        ("/label", {"pair": 1, "score": 1, "by": "x"}, 400),
        ("/skip", {"pair": 9}, 409),
    ],
)
def test_what_the_page_would_not_send_is_refused_and_changes_nothing(tmp_path, path, body, status):
    with labelling(tmp_path / "labels.tsv") as page:
        before = page.call("GET", "/state")[1]
        assert page.post(path, body)[0] == status
        assert page.call("GET", "/state")[1] == before
    assert rows(tmp_path / "labels.tsv") == []


def test_other_pages_of_the_browser_and_other_names_get_nothing(tmp_path):
    with labelling(tmp_path / "labels.tsv") as page:
        body = {"pair": 1, "score": 1}
        origin = f"http://127.0.0.1:{page.port}"
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}):
            status, answer, _ = page.post("/label", body, headers=headers)
            assert (status, answer["error"]["code"]) == (403, "other_origin")
        for path in ("/", "/state"):
            assert page.call("GET", path, headers={"Host": "evil.example"})[0] == 421
        plain = page.post("/label", body, headers={"Content-Type": "text/plain"})
        assert plain[0] == 400
        assert rows(tmp_path / "labels.tsv") == []
        assert page.post("/label", body, headers={"Origin": origin})[0] == 200


def test_a_disk_that_is_full_is_said_and_the_pair_stays(tmp_path, monkeypatch):
    path = tmp_path / "labels.tsv"

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with labelling(path) as page:
        before = path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(label_file.os, "fsync", full)
            status, answer, _ = page.post("/label", {"pair": 1, "score": 3})
        assert (status, answer["error"]["code"]) == (507, "not_kept")
        assert path.read_bytes() == before
        assert page.post("/label", {"pair": 1, "score": 3})[1]["done"] == 1
    assert len(rows(path)) == 1


def test_the_page_needs_nothing_from_elsewhere_and_runs_only_its_own_script(tmp_path):
    assert re.findall(r"https?://|//cdn|@import|innerHTML|<link[^>]+href=\"(?!data:)", PAGE) == []
    with labelling(tmp_path / "labels.tsv") as page:
        status, served, headers = page.call("GET", "/", parsed=False)
        assert (status, served) == (200, PAGE)
        assert re.search(r"script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-", headers["content-security-policy"])
        assert "unsafe" not in headers["content-security-policy"]
        assert page.call("GET", "/openapi.json")[0] == 404


CODE = """
import sys
from samesense.cli.main import main
from samesense.execution import progress
progress.PATIENCE = progress.INTERVAL = 0.0
main(["label", sys.argv[1], "--output", sys.argv[2], "--pairs-by", "random", "--port", "0"])
"""


@pytest.mark.posix
def test_ctrl_c_keeps_what_is_labelled_and_no_torch_is_needed(tmp_path):
    (tmp_path / "texts.txt").write_text("a man eats\nsomeone has a meal\nthe train is late\n")
    output = tmp_path / "labels.tsv"
    code = f"import sys\nsys.modules['torch'] = None\n{CODE}"
    command = [sys.executable, "-c", code, str(tmp_path / "texts.txt"), str(output)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, text=True, stderr=subprocess.PIPE) as running:
        try:
            port = next(int(match[1]) for line in running.stderr if (match := re.search(r":(\d+)$", line.strip())))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request(
                "POST", "/label", json.dumps({"pair": 1, "score": 2}), {"Content-Type": "application/json"}
            )
            assert connection.getresponse().read()
            time.sleep(2 * progress.TICK)
            running.send_signal(signal.SIGINT)
            stderr = running.stderr.read()
            assert "1 of 3 pairs have a label" in stderr
            assert "so far" not in stderr, "a person takes time, of which nothing is said"
            assert running.wait(20) == 0
        finally:
            running.kill()
    assert len(rows(output)) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_person_labels_by_keyboard_in_a_real_browser(tmp_path):
    path = tmp_path / "labels.tsv"
    with labelling(path) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", "document.querySelector('#one')?.textContent")
        assert page.run("document.querySelector('#one').textContent") == PAIRS[0][0]
        for key, done, message in (
            ("4", 1, "4:"),
            ("0", 2, "0:"),
            ("u", 1, "taken back"),
            ("s", 1, "skipped"),
            ("3", 2, "3:"),
        ):
            page.press(key, ord(key.upper()))  # one that comes before the next pair is shown is not taken for it
            page.wait(f"document.querySelector('#label-status').textContent.startsWith({message!r}) || null")
            assert page.run("document.querySelector('#progress').value") == done
        assert page.complaints() == []
    assert [row[2] for row in rows(path)] == ["4", "3"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_keys_mean_the_same_with_caps_lock_and_on_other_keyboards(tmp_path):
    path = tmp_path / "labels.tsv"
    with labelling(path) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", "document.querySelector('#one')?.textContent")
        for key, code, message in (
            ("S", "KeyS", "skipped"),
            ("é", "Digit2", "2:"),
            ("г", "KeyU", "taken back"),
            ("4", "Numpad4", "4:"),
            ("U", "KeyU", "taken back"),
        ):
            event = json.dumps({"key": key, "code": code, "bubbles": True})
            page.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {event}))")
            page.wait(f"document.querySelector('#label-status').textContent.startsWith({message!r}) || null")
    assert rows(path) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_key_that_is_held_on_a_button_labels_one_pair(tmp_path):
    path = tmp_path / "labels.tsv"
    with labelling(path) as server, browser() as page:
        page.open(f"http://127.0.0.1:{server.port}/", "!!document.querySelector('.answers button')")
        page.run("document.querySelector('.answers button').focus()")
        enter = {"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        for repeated in range(6):
            page.send("Input.dispatchKeyEvent", **enter, autoRepeat=repeated > 0)
            time.sleep(0.2)
        page.wait("document.querySelector('#progress').value > 0 || null")
    assert len(rows(path)) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_server_that_has_ended_is_said(tmp_path):
    path = tmp_path / "labels.tsv"
    with browser() as page:
        with labelling(path) as server:
            page.open(f"http://127.0.0.1:{server.port}/", "!!document.querySelector('.answers button')")
        page.press("3", ord("3"))
        text = page.wait("document.querySelector('#label-status').textContent")
    assert text == "The server does not answer. Start its command again, and reload this page."
