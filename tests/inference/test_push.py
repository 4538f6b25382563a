"""A finished model on the hub, here a stub of its API on this machine."""

import base64
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import huggingface_hub
import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

import samesense
from samesense.encoder.saving.card import Card, write_card
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError, OutputError
from samesense.files import write_json
from tests.command import run_command
from tests.messages import listen
from tests.network import _no_network  # noqa: F401

NAME = "owner/name"


class Hub(ThreadingHTTPServer):
    """Keeps what it is sent: repositories, commits, and large files by their SHA-256."""

    def __init__(self, allowed=True):
        super().__init__(("127.0.0.1", 0), Answer)
        self.repositories, self.files, self.large, self.allowed = {}, {}, {}, allowed
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def put_json(self, content, code=200):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def sent(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_PUT(self):
        self.server.large[self.path.rpartition("/")[2]] = self.sent()
        self.put_json({})

    def do_POST(self):
        body = self.sent()
        if not self.server.allowed:
            return self.put_json({"error": "You may not write here."}, 403)
        answer = self.made(body) if self.path == "/api/repos/create" else self.stored(body)
        return self.put_json(*answer)

    def made(self, body):
        """Make a repository."""
        request = json.loads(body)
        repository = f"{request.get('organization')}/{request['name']}"
        url = f"{self.server.url}/{repository}"
        if repository in self.server.repositories:
            return {"error": "exists", "url": url}, 409
        self.server.repositories[repository] = request
        return ({"url": url},)

    def stored(self, body):
        """Store what belongs to a commit."""
        hub = self.server
        if self.path == "/api/validate-yaml":
            return ({"errors": [], "warnings": []},)
        if self.path == f"/api/models/{NAME}/preupload/main":
            modes = {True: "lfs", False: "regular"}
            requested = [file["path"] for file in json.loads(body)["files"]]
            lines = [(path, modes[path.endswith(".safetensors")]) for path in requested]
            return ({"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in lines]},)
        if self.path == f"/{NAME}.git/info/lfs/objects/batch":
            requested = json.loads(body)["objects"]
            locations = [
                {**item, "actions": {"upload": {"href": f"{hub.url}/large/{item['oid']}"}}} for item in requested
            ]
            return ({"transfer": "basic", "objects": locations},)
        if self.path == f"/api/models/{NAME}/commit/main":
            for line in map(json.loads, body.splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    hub.files[value["path"]] = base64.b64decode(value["content"])
                if line["key"] == "lfsFile":
                    hub.files[value["path"]] = hub.large[value["oid"]]
            return ({"commitUrl": f"{hub.url}/{NAME}/commit/1", "commitOid": "1", "success": True},)
        return {"error": f"unknown {self.path}"}, 404


@contextmanager
def running(monkeypatch, **options):
    hub = Hub(**options)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", "hf_made")
    Thread(target=hub.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()


@pytest.fixture
def hub(monkeypatch):
    with running(monkeypatch) as started:
        yield started


@pytest.fixture
def run(tiny, tmp_path):
    """The folder of a finished run."""
    folder = save(tiny, tmp_path / "run" / "model")
    write_card(folder, Card(name="run", base="owner/root", method="trained by cosent"))
    (folder / ".lock").write_text("")
    write_json(tmp_path / "run" / "manifest.json", {"status": "finished"})
    return tmp_path / "run"


def test_the_whole_model_arrives_and_is_private(run, hub, tiny, sentences, tmp_path):
    assert samesense.push(run, NAME, license="mit", language=("en", "de")) == f"{hub.url}/{NAME}"
    assert hub.repositories[NAME]["visibility"] == "private"
    local = {str(path.relative_to(run / "model")): path for path in (run / "model").rglob("*") if path.is_file()}
    assert set(hub.files) == set(local) - {".lock"}
    assert all(hub.files[name] == local[name].read_bytes() for name in hub.files)
    assert hub.large
    for name, content in hub.files.items():
        local_path = tmp_path / "fetched" / name
        local_path.parent.mkdir(parents=True, exist_ok=True)
        local_path.write_bytes(content)
    again = SentenceTransformer(str(tmp_path / "fetched"), device="cpu")
    assert (again.encode(sentences) == tiny.encode(sentences)).all()


def test_licence_and_language_stand_in_the_card_from_then_on(run, hub):
    messages = listen()
    samesense.push(run, NAME)
    assert any("states no licence" in line for line in messages)
    samesense.push(run, NAME, license="mit", language=("en", "de"))  # a repository that is there
    card = ModelCard.load(run / "model" / "README.md")
    assert (card.data.license, card.data.language) == ("mit", ["en", "de"])
    assert "| licence | mit |\n| language | en, de |" in card.text
    assert f'SentenceTransformer("{NAME}")' in card.text and "this folder" not in card.text
    assert hub.files["README.md"] == (run / "model" / "README.md").read_bytes()


def test_the_command(run, hub, capsys):
    code, out, err = run_command(capsys, "push", run, NAME, "--public", "--license", "mit", "--language", "en")
    assert (code, out, err) == (0, f"{hub.url}/{NAME}\n", "")
    assert hub.repositories[NAME]["visibility"] == "public"


def test_what_is_no_finished_model_is_refused(run, hub, tiny_trunk, tmp_path):
    for model, message in (
        ("default", "A model is uploaded from its folder; default is none"),
        (str(tiny_trunk), "is a bare transformer"),
        (str(tmp_path / "absent"), "There is no model folder"),
    ):
        with pytest.raises(ModelError, match=message):
            samesense.push(model, NAME)
    with pytest.raises(ConfigError, match=r"^A repository is named as owner/name; received 'a/b/c'\.$"):
        samesense.push(run, "a/b/c")
    write_json(run / "manifest.json", {"status": "interrupted"})
    with pytest.raises(ModelError, match=r"is unfinished\. Go on with it: the same command with `resume`"):
        samesense.push(run, NAME)
    (run / "manifest.json").unlink()
    (run / "model" / "README.md").unlink()
    with pytest.raises(ModelError, match=r"has no card \(README\.md\)"):
        samesense.push(run, NAME)
    assert not hub.repositories


def test_a_hub_that_refuses_or_is_not_there_is_named(run, monkeypatch):
    with (
        running(monkeypatch, allowed=False),
        pytest.raises(OutputError, match=r"^The hub does not take owner/name: .*403"),
    ):
        samesense.push(run, NAME)
    with pytest.raises(OutputError, match=r"^The hub does not take owner/name: "):
        samesense.push(run, NAME)
