"""No dependency reports to anyone: no file of its own in the user's cache, no connection."""

import os
import signal
import socket
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from samesense.telemetry import OPT_OUT_VARIABLES

CI_VARIABLES = ("CI", "TF_BUILD", "JENKINS_URL")
"""Where one of these is set, OpenVINO reports nothing."""

IMPORT_FIRST = "import samesense, onnxruntime"
IMPORT_ALONE = "import onnxruntime"


@pytest.fixture
def user(tmp_path):
    """The environment of a user who has set nothing, with an empty home."""
    environment = {name: value for name, value in os.environ.items() if name not in OPT_OUT_VARIABLES}
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME"):
        environment[name] = str(tmp_path / "home")
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    (tmp_path / "home").mkdir()
    return environment


def files_below(folder):
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


def run_python(code, environment):
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)


def run_command(arguments, environment):
    command = [sys.executable, "-m", "samesense", *map(str, arguments)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def uploads(environment):
    """Whether this version of onnxruntime writes a device id when nobody turns that off."""
    run_python(IMPORT_ALONE, environment)
    return "deviceid" in files_below(environment["HOME"])


@pytest.mark.parametrize("variable", [None, ""])
def test_onnxruntime_writes_no_device_id(user, variable):
    if variable is not None:
        user["ORT_DISABLE_TELEMETRY"] = variable
    run_python(IMPORT_FIRST, user)
    assert files_below(user["HOME"]) == []


def test_a_user_may_ask_for_telemetry(user):
    user["ORT_DISABLE_TELEMETRY"] = "0"
    code = "import os, samesense; print(os.environ['ORT_DISABLE_TELEMETRY'], os.environ['RAY_USAGE_STATS_ENABLED'])"
    printed = subprocess.run([sys.executable, "-c", code], env=user, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == ["0", "0"]


def test_huggingface_hub_and_datasets_see_their_opt_out(user):
    code = "import samesense, huggingface_hub.constants as h, datasets.config as d; assert h.HF_HUB_DISABLE_TELEMETRY; "
    run_python(code + "assert not d.HF_UPDATE_DOWNLOAD_COUNTS", user)


def test_openvino_and_nncf_are_imported_without_their_telemetry(user):
    """Both report to Google Analytics as soon as they are imported; the control is OpenVINO alone."""
    if find_spec("openvino") is None or find_spec("nncf") is None:
        pytest.skip("needs the extra openvino-export")
    user = {name: value for name, value in user.items() if name not in CI_VARIABLES}
    proxy = Proxy()
    run_python("import samesense, openvino, nncf", user | proxy.variables)
    assert files_below(user["HOME"]) == []
    assert proxy.hosts == []
    run_python("import openvino", user | proxy.variables)
    assert proxy.reached.wait(60) and "openvino_ga_cid" in files_below(user["HOME"])


def test_workers_of_processes_that_begin_without_an_environment(user):
    """Spark and Ray start workers elsewhere: unpickling there imports samesense first, too."""
    code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read()); import onnxruntime"
    payload = b"csamesense.inference.models.load\nload\n."
    subprocess.run([sys.executable, "-c", code], input=payload, env=user, check=True, capture_output=True)
    assert files_below(user["HOME"]) == []


class Proxy:
    """Counts the connections that a process tries through its HTTPS proxy, and answers none."""

    def __init__(self):
        self.hosts = []
        self.reached = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def variables(self):
        url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        return dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"), url)

    def _accept(self):
        while True:
            connection, _ = self._listener.accept()
            with connection:
                self.hosts.append(connection.recv(200).split(b"\r\n")[0])
            self.reached.set()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder"])
def test_training_from_a_folder_asks_no_hub(user, tiny_trunk, toy_pairs, tmp_path, kind):
    """Neither while the folder is loaded, nor when checkpoints are saved, nor when the result is loaded and used."""
    online = {name: value for name, value in user.items() if not name.startswith(("HF_HUB_OFFLINE", "HF_DATASETS"))}
    proxy = Proxy()
    started = str(tmp_path / "started")
    code = (
        "from samesense.encoder.assembly.build import build; from samesense.encoder.saving.storage import save; "
        f"save(build({str(tiny_trunk)!r}), {started!r})"
    )
    run_python(code, user)
    train = ["train", toy_pairs / "train.tsv", "--dev", toy_pairs / "dev.tsv", "--test", toy_pairs / "test.tsv"]
    size = ["--model", started, "--epochs", "1", "--batch-size", "16", "--eval-steps", "5"]
    cross = ["--config", "cosent-cross"] if kind == "cross-encoder" else []
    run_command([*train, *size, *cross, "--output", tmp_path / "run"], online | proxy.variables)
    run_command(["evaluate", tmp_path / "run", "--data", toy_pairs / "test.tsv"], online | proxy.variables)
    assert proxy.hosts == []


@pytest.mark.long
@pytest.mark.posix
def test_an_exported_model_connects_to_no_one(user, exported_static, tmp_path):
    """The control, plain onnxruntime, runs beside it until it has tried to upload twice."""
    if not uploads(user):
        pytest.skip("this version of onnxruntime has no telemetry")
    control = Proxy()
    proxy = Proxy()
    encode = f"import samesense, time; samesense.load({str(exported_static)!r}).encode(['a cat']); time.sleep(600)"
    alone = "import onnxruntime, time; time.sleep(600)"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=user | counter.variables, start_new_session=True)
        for code, counter in ((encode, proxy), (alone, control))
    ]
    try:
        for _ in range(2):
            control.reached.wait()
            control.reached.clear()
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert proxy.hosts == []
