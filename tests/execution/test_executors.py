import os
import signal
import socket
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from samesense.errors import ConfigError, MissingExtraError, SamesenseError
from samesense.execution.shards import executors
from samesense.execution.shards.executors import OnRay, Processes, choose_executor, usual_workers
from samesense.execution.shards.tasks import Done, Failed, Serial
from tests.execution.works import OwnGpu, Squares

EXECUTORS = [lambda retries=2: Serial(retries), lambda retries=2: Processes(2, retries)]


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "processes"])
def test_every_task_is_done_once_though_some_fail_in_between(executor, tmp_path):
    work = Squares(tmp_path, ((3, "fails", 2), (5, "fails", 9)))
    outcomes = list(executor().run(work, iter(range(8))))
    done = {outcome.task: outcome.result[0] for outcome in outcomes if isinstance(outcome, Done)}
    assert done == {task: task**2 for task in range(8) if task != 5}
    assert [outcome for outcome in outcomes if isinstance(outcome, Failed)] == [
        Failed(5, "RuntimeError: task 5 fails", 3)
    ]
    assert len(outcomes) == 8
    assert [work.tries(task) for task in range(8)] == [1, 1, 1, 3, 1, 3, 1, 1]


@pytest.mark.parametrize("executor", EXECUTORS, ids=["serial", "processes"])
def test_what_breaks_a_rule_ends_it_at_once(executor, tmp_path):
    work = Squares(tmp_path, ((1, "refuses", 9),))
    with pytest.raises(SamesenseError, match="task 1 breaks a rule"):
        list(executor().run(work, range(1, 4)))
    assert work.tries(1) == 1


def test_serial_stays_in_this_process_and_reads_no_task_too_early(tmp_path):
    outcomes = Serial().run(Squares(tmp_path), count())
    assert [(outcome.task, outcome.result[1]) for outcome in islice(outcomes, 3)] == [
        (task, os.getpid()) for task in range(3)
    ]


def test_workers_do_not_run_the_script_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from samesense.execution.shards.executors import Processes\n"
        "from tests.execution.works import Squares\n"
        f"home = Path({str(tmp_path)!r})\n"
        "print('begun', flush=True)\n"
        "print(sorted(outcome.result[0] for outcome in Processes(2).run(Squares(home), range(3))))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert answer.stdout.splitlines() == ["begun", "[0, 1, 4]"], answer.stderr


def test_a_worker_finds_the_functions_of_the_script_that_its_work_needs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from samesense.execution.shards.executors import Processes\n"
        "from tests.execution.works import Squares\n"
        "class Own(Squares):\n"
        "    pass\n"
        "if __name__ == '__main__':\n"
        f"    home = Path({str(tmp_path)!r})\n"
        "    print(sorted(outcome.result[0] for outcome in Processes(2).run(Own(home), range(3))))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert answer.stdout.splitlines() == ["[0, 1, 4]"], answer.stderr


@pytest.mark.posix
def test_a_dead_worker_costs_only_the_task_it_was_at(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    work = Squares(tmp_path, ((2, "dies", 1), (4, "exits", 1), (6, "dies", 9)))
    outcomes = list(Processes(2, retries=1).run(work, range(9)))
    done = {outcome.task: outcome.result for outcome in outcomes if isinstance(outcome, Done)}
    assert {task: result[0] for task, result in done.items()} == {task: task**2 for task in range(9) if task != 6}
    assert {result[2] for result in done.values()} == {"1"}
    assert (os.environ["OMP_NUM_THREADS"], os.environ.get("OPENBLAS_NUM_THREADS")) == ("7", None)
    assert os.getpid() not in {result[1] for result in done.values()}
    (failed,) = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert (failed.task, failed.attempts) == (6, 2)
    assert "killed by SIGKILL" in failed.reason
    assert [work.tries(task) for task in range(9)] == [1, 1, 2, 1, 2, 1, 2, 1, 1]


@pytest.mark.posix
def test_closing_stops_the_workers(tmp_path):
    outcomes = Processes(2).run(Squares(tmp_path, seconds=0.05), count())
    workers = {next(outcomes).result[1] for _ in range(6)}
    outcomes.close()
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@pytest.mark.posix
def test_workers_end_with_a_killed_parent(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from samesense.execution.shards.executors import Processes\n"
        "from tests.execution.works import OwnGpu, Squares\n"
        "if __name__ == '__main__':\n"
        f"    for one in Processes(2).run(Squares(Path({str(tmp_path)!r}), seconds=0.01), range(10**9)):\n"
        "        print(one.result[1], flush=True)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    workers = {int(parent.stdout.readline()) for _ in range(8)}
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    while any(_runs(worker) for worker in workers):
        time.sleep(0.01)


def _runs(process):
    """Return whether a process runs and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ray_says_what_is_missing(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "samesense")
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match="address names a running Ray cluster"):
        next(OnRay("nowhere:1:2").run(Squares(tmp_path), range(1)))
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1.* cannot be reached"):
        next(OnRay("127.0.0.1:1").run(Squares(tmp_path), range(1)))
    assert "connecting to the Ray cluster at 127.0.0.1:1" in caplog.text
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"samesense\[ray\]"):
        next(OnRay().run(Squares(tmp_path), range(1)))


def test_ray_leaves_sigterm_to_the_command_which_says_how_to_go_on():
    def abort(*_):
        raise AssertionError

    before = signal.getsignal(signal.SIGTERM)
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **_: signal.signal(signal.SIGTERM, abort))
    assert OnRay()._connect(ray)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("kind", ["named", "auto"])
def test_what_listens_and_is_no_ray_cluster_is_refused(tmp_path, monkeypatch, kind):
    """Such as Ray's own dashboard; Ray itself tries for minutes."""
    pytest.importorskip("ray")
    monkeypatch.setattr(executors, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(socket, "create_connection", lambda *_: socket.socket())
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if kind == "auto":
            # Where auto looks first.
            monkeypatch.setenv("RAY_ADDRESS", address)
            address = "auto"
        with pytest.raises(ConfigError, match=rf"received '{address}'.*\(no answer within 1 seconds\)"):
            next(OnRay(address).run(Squares(tmp_path), range(1)))


@pytest.mark.long
def test_on_ray_a_task_takes_a_gpu_and_none_waits_for_one_that_is_not_there(tmp_path):
    """GPUs of Ray are numbers that it counts, so that machines here can say that they have some."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "object_store_memory": 80 << 20})
    try:
        with pytest.raises(ConfigError, match="no machine of the Ray cluster has one"):
            list(OnRay(cluster.address, gpus=1).run(Squares(tmp_path), range(3)))
        cluster.add_node(num_cpus=2, num_gpus=2, object_store_memory=80 << 20)
        cluster.wait_for_nodes()
        outcomes = list(OnRay(cluster.address, gpus=1).run(OwnGpu(tmp_path), range(6)))
        assert sorted(outcome.task for outcome in outcomes) == list(range(6))
        assert all(outcome.result in (["0"], ["1"]) for outcome in outcomes)
        assert len(list(tmp_path.glob("at-once-*"))) <= 2
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_settings_of_another_executor_are_refused():
    with pytest.raises(ConfigError, match="address is for the ray executor"):
        choose_executor("embedded", address="auto")
    with pytest.raises(ConfigError, match="workers is for the embedded executor"):
        choose_executor("ray", workers=2)
    with pytest.raises(ConfigError, match="workers must be 1 or more; received 0"):
        choose_executor("embedded", workers=0)
    several = {"default_workers": 3}
    chosen = [
        choose_executor("embedded"),
        choose_executor("embedded", **several),
        choose_executor("embedded", workers=1, **several),
        choose_executor("ray", **several),
    ]
    assert [type(executor).__name__ for executor in chosen] == ["Serial", "Processes", "Serial", "OnRay"]


def test_processes_are_as_many_as_processors_where_there_is_work_and_memory_for_them(monkeypatch):
    monkeypatch.setattr(executors, "cores", lambda: 2)
    assert [usual_workers(shards, "cpu") for shards in (0, 9, 19, 20, 500)] == [1, 1, 1, 2, 2]
    monkeypatch.setattr(executors, "cores", lambda: 64)
    assert usual_workers(500, "cpu") == 4
    assert usual_workers(500, "cuda") == 1
