"""The hub is probed once, with a short timeout, and never for files on this machine."""

import errno
import os
import socket
import threading
import time

import pytest

from samesense import hub
from samesense.data.rows.load import list_rows
from samesense.data.tuples.paraphrase import paraphrase
from samesense.errors import DataError, ModelError
from samesense.recipes.origin.settings import choose_origin
from samesense.urls import store_of
from tests.network import _no_network  # noqa: F401

constants = pytest.importorskip("huggingface_hub.constants")


class Server:
    """A hub on this machine that counts connections; ``answer`` is what it says to each, and ``None`` is silence."""

    def __init__(self, answer, delay):
        self.connections = 0
        self._answer = answer
        self._delay = delay
        self._silent = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self):
        self._listener.close()
        for connection in self._silent:
            connection.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            self.connections += 1
            if self._answer is None:
                self._silent.append(connection)
                continue
            with connection:
                connection.recv(4096)
                time.sleep(self._delay)
                connection.sendall(self._answer)


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """Make a hub that answers in a given way the hub, with an empty cache."""
    servers = []

    def start(answer, delay=0.0):
        servers.append(Server(answer, delay))
        monkeypatch.setattr(constants, "ENDPOINT", servers[-1].url)
        return servers[-1]

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "_answer", None)
    monkeypatch.setattr(hub, "NOTICE", 0.05)
    monkeypatch.setattr(hub, "PATIENCE", 0.1)
    yield start
    for server in servers:
        server.close()


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
def cached(tmp_path):
    """A copy of owner/model in the cache."""
    snapshot = tmp_path / "cache" / "models--owner--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    return snapshot


def test_any_answer_is_one(ask, monkeypatch):
    server = ask(NOT_FOUND)
    monkeypatch.setattr(hub, "NOTICE", 60)  # it answers at once, but the machine may be busy
    monkeypatch.setattr(hub, "PATIENCE", 60)
    assert hub.unreachable() == ""
    assert hub.unreachable() == ""
    assert server.connections == 1


def test_a_slow_hub_is_waited_for(ask, monkeypatch, caplog):
    ask(NOT_FOUND, delay=0.2)
    monkeypatch.setattr(hub, "PATIENCE", 60)
    assert hub.unreachable() == ""
    assert "the hub has not answered" in caplog.text


@pytest.mark.parametrize("answer", [None, b"", BAD_GATEWAY])
def test_a_hub_that_does_not_answer_is_asked_once(ask, answer):
    """The hub accepts connections and is silent, hangs up, or stands behind a failing gateway."""
    server = ask(answer)
    for _ in range(3):
        with pytest.raises(ModelError, match=r"owner/model is not on this machine, and the hub cannot be reached"):
            hub.check_model("owner/model")
    assert server.connections == 1


def test_a_copy_on_this_machine_is_opened_without_the_hub(ask, cached):
    server = ask(None)
    hub.check_model("owner/model")
    assert server.connections == 0
    with hub.hub_access("owner/model"):
        assert constants.HF_HUB_OFFLINE
    assert not constants.HF_HUB_OFFLINE
    assert server.connections == 1


def test_a_copy_that_lacks_files_is_said_to(ask, cached):
    ask(BAD_GATEWAY)
    with pytest.raises(ModelError, match="not wholly on this machine"), hub.hub_access("owner/model"):
        raise FileNotFoundError("model.safetensors")


def test_a_damaged_copy_is_not_taken_for_an_absent_one(ask, cached):
    ask(BAD_GATEWAY)
    with pytest.raises(ValueError, match="damaged"), hub.hub_access("owner/model"):
        raise ValueError("damaged")


def test_a_full_disk_beside_a_copy_is_said_where_the_hub_is_away(ask, cached):
    ask(BAD_GATEWAY)
    expected = f"cannot be kept on this machine, below .*: {os.strerror(errno.ENOSPC)}"
    with pytest.raises(ModelError, match=expected), hub.hub_access("owner/model"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_short_wait_for_a_copy_does_not_refuse_a_download(ask, cached):
    server = ask(None)
    assert hub.unreachable(cached=True)
    assert hub.unreachable()
    assert server.connections == 2


def test_a_folder_needs_no_hub(ask, tmp_path):
    server = ask(None)
    with hub.hub_access(str(tmp_path)):
        assert not constants.HF_HUB_OFFLINE
    with hub.hub_access("./missing"):
        pass
    assert server.connections == 0


def test_a_user_who_forbids_the_hub_is_told_so(ask, monkeypatch):
    server = ask(None)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"the hub is not asked \(HF_HUB_OFFLINE is set\)"):
        hub.check_model("owner/model")
    with hub.hub_access("default"):
        pass
    assert constants.HF_HUB_OFFLINE
    assert server.connections == 0


def test_an_answer_holds_for_a_while_only(ask, monkeypatch):
    server = ask(BAD_GATEWAY)
    assert hub.unreachable()
    monkeypatch.setattr(hub.time, "monotonic", lambda: float("1e12"))
    assert hub.unreachable()
    assert server.connections == 2


def test_data_and_language_models_are_refused_at_once_too(ask):
    server = ask(BAD_GATEWAY)
    pytest.importorskip("datasets")
    with pytest.raises(DataError, match="owner/name is not on this machine, and the hub cannot be reached"):
        list_rows("owner/name")
    with pytest.raises(ModelError, match=r"SmolLM2-135M-Instruct is not on this machine, .* Give the folder of one"):
        choose_origin("words", {}).check_language_model()
    with pytest.raises(ModelError, match=r"owner/writer is not on this machine, .* folder of one as `paraphraser`"):
        paraphrase("owner/writer")
    with pytest.raises(DataError, match="the hub cannot be reached"):
        store_of("hf://datasets/owner/name/train.csv")
    assert server.connections == 1


@pytest.mark.parametrize(("kind", "error"), [("model", ModelError), ("dataset", DataError)])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_what_cannot_be_kept_on_this_machine_is_no_matter_of_the_network(monkeypatch, kind, error, number):
    monkeypatch.setattr(hub, "unreachable", lambda **_: "")
    expected = rf"owner/name cannot be kept on this machine, below .*: {os.strerror(number)}. .*set HF_HOME"
    with pytest.raises(error, match=expected), hub.hub_access("owner/name", kind):
        raise RuntimeError("cannot load") from OSError(number, os.strerror(number))
    with pytest.raises(ValueError, match="damaged"), hub.hub_access("owner/name", kind):
        raise ValueError("damaged")
