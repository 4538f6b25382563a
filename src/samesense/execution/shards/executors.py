"""Executors of tasks: processes of this machine or of a Ray cluster, any of which may die."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from multiprocessing import connection, get_context
from typing import Any

from samesense.choices import ExecutorName
from samesense.errors import ConfigError
from samesense.execution.shards.spawned import start, when_parent_ends
from samesense.execution.shards.tasks import RETRIES, Answer, Executor, Outcome, Pending, Serial, Work, answer, failed
from samesense.execution.threads import cores
from samesense.failures import imported, shortened

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""Seconds until a Ray cluster that does not answer counts as absent."""

ANSWER_SECONDS = 30.0
"""Seconds until a cluster that listens, or is looked for, and does not take a connection counts as absent."""

_PROBE = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"

_HOST_PORT = re.compile(r"(?:ray://)?(?P<host>[^/]+):(?P<port>\d+)")

FEW_SHARDS = 10
"""Shards per process below which another process does not pay."""

MOST_WORKERS = 4
"""Largest default number of processes.

Each process holds its own language model, so that a machine of many processors could run out of memory.
"""

# Variables of the libraries with which numpy and torch may have been built.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Processes:
    """The executor of several workers on one machine.

    Each worker is a spawned process with its own pipe, so that the task of a worker that died is known. A dead worker
    is replaced. Workers compute on one thread, ignore Ctrl-C, which this process handles, and end with this process
    in any case.
    """

    def __init__(self, workers: int, retries: int = RETRIES) -> None:
        self._workers = workers
        self._retries = retries

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do tasks; see :class:`~samesense.execution.shards.tasks.Executor`."""
        pending = Pending(tasks, self._retries)
        idle: list[_Worker] = []
        busy: dict[Any, _Worker] = {}
        try:
            while True:
                while len(busy) < self._workers and (task := pending.take()) is not None:
                    # Processes are started as tasks come, since few tasks need fewer of them.
                    worker = idle.pop() if idle else _Worker(work)
                    worker.begin(task)
                    busy[worker.pipe] = worker
                if not busy:
                    return
                # A pipe becomes readable when an answer is there, and also when its process has died.
                for pipe in connection.wait(list(busy)):
                    worker = busy.pop(pipe)
                    task, received = worker.finish()
                    if worker.alive:
                        idle.append(worker)
                    outcome = pending.settle(task, received)
                    if outcome is not None:
                        yield outcome
        finally:
            # Also where the caller closes the generator early, as on Ctrl-C.
            for worker in [*idle, *busy.values()]:
                worker.stop()


class _Worker:
    """A process and its present task."""

    def __init__(self, work: Work) -> None:
        # Not forked: a fork copies torch's thread pool without its threads, and would deadlock.
        context = get_context("spawn")
        self.pipe, worker_pipe = context.Pipe()
        self._process = context.Process(target=_serve, args=(worker_pipe, work), daemon=True)
        with _one_thread():
            start(self._process, work)
        worker_pipe.close()  # so that the pipe ends when the process does
        self._task = -1
        self.alive = True

    def begin(self, task: int) -> None:
        self._task = task
        with contextlib.suppress(OSError):  # it has died; finish() finds out
            self.pipe.send(task)

    def finish(self) -> tuple[int, Answer]:
        """Return the task and its answer, once the pipe can be read."""
        try:
            return self._task, self.pipe.recv()
        except (EOFError, OSError):
            # Joined first, as the exit code is unknown before.
            self.stop()
            return self._task, ("failed", f"its process ended, {_exit_reason(self._process.exitcode)}")

    def stop(self) -> None:
        self.alive = False
        self.pipe.close()
        self._process.kill()
        self._process.join()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Make processes that are started within compute on one thread; libraries read these variables at import."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name} (SIGKILL is often a lack of memory)"
    return f"with code {code}"


def _serve(pipe: connection.Connection[Any, Any], work: Work) -> None:
    """Do tasks until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    when_parent_ends(partial(os._exit, 1))
    while True:
        try:
            pipe.send(answer(work, pipe.recv()))
        except (EOFError, OSError):
            return


class OnRay:
    """The executor of a Ray cluster. Results come back to this process, so that machines need no shared disk.

    As many tasks run at once as the cluster has processors at that moment, or GPUs where tasks use them, so that
    machines may join and leave. A task whose worker, machine or result is lost is tried again elsewhere.
    """

    def __init__(self, address: str | None = None, retries: int = RETRIES, gpus: float = 0) -> None:
        self._address = address
        self._retries = retries
        self._gpus = gpus

    def run(self, work: Work, tasks: Iterable[int]) -> Generator[Outcome, None, None]:
        """Do tasks; see :class:`~samesense.execution.shards.tasks.Executor`.

        ConfigError if no cluster is at the address, or none of its machines has a GPU and tasks take one.
        """
        ray = imported("ray", "ray")
        connected = self._connect(ray)
        remote = ray.remote(answer).options(num_cpus=1, num_gpus=self._gpus, max_retries=0)  # Pending retries
        shared = ray.put(work)  # sent once, not with every task
        pending = Pending(tasks, self._retries)
        running: dict[Any, int] = {}
        try:
            if self._gpus and not ray.cluster_resources().get("GPU"):  # tasks would wait for one forever
                raise ConfigError("The device is a GPU; no machine of the Ray cluster has one. Leave the device out.")
            while True:
                while len(running) < self._slots(ray.cluster_resources()) and (task := pending.take()) is not None:
                    running[remote.remote(shared, task)] = task
                if not running:
                    return
                for reference in ray.wait(list(running), num_returns=1)[0]:
                    outcome = pending.settle(running.pop(reference), _received(ray, reference))
                    if outcome is not None:
                        yield outcome
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            # A connection of the caller's own stays open.
            if connected:
                ray.shutdown()

    def _slots(self, resources: Mapping[str, float]) -> int:
        """Return how many tasks the cluster does at once."""
        slots = resources.get("CPU", 1)
        if self._gpus:
            slots = min(slots, resources.get("GPU", 0) / self._gpus)
        return max(1, int(slots))

    def _connect(self, ray: Any) -> bool:
        """Connect unless this process is connected already; return whether it connected."""
        if ray.is_initialized():
            return False
        try:
            if self._address is not None:
                logger.info(f"connecting to the Ray cluster at {self._address}")
                self._check_address(self._address)
            # Without an address Ray would join a cluster that it finds by itself.
            with _kept_sigterm():
                ray.init(address=self._address or "local", log_to_driver=False, logging_level="ERROR")
        # RuntimeError: another version of Ray or Python runs there.
        except (ConnectionError, ValueError, OSError, RuntimeError) as error:
            raise ConfigError(
                f"address names a running Ray cluster, as in auto or HOST:6379; received {self._address!r}, and it "
                f"cannot be reached ({shortened(error)}). Start one with: ray start --head"
            ) from error
        return True

    def _check_address(self, address: str) -> None:
        """Raise OSError if no cluster answers at the address: Ray itself tries for minutes, and some never end.

        What listens may be something else, such as Ray's own dashboard, and ``auto`` may lead to a head that is dead. A
        process tries it, as a connection that hangs can be ended in no other way.
        """
        match = _HOST_PORT.fullmatch(address)
        if match:
            socket.create_connection((match["host"].strip("[]"), int(match["port"])), CONNECT_SECONDS).close()
        try:
            probe = subprocess.run(
                [sys.executable, "-c", _PROBE, address], capture_output=True, timeout=ANSWER_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ConnectionError(f"no answer within {ANSWER_SECONDS:.0f} seconds") from error
        if probe.returncode:
            lines = probe.stderr.decode(errors="replace").strip().splitlines()
            raise ConnectionError(lines[-1] if lines else "Ray ended without a word")


@contextlib.contextmanager
def _kept_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM, in whose place Ray puts one that aborts."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _received(ray: Any, reference: Any) -> Answer:
    try:
        received: Answer = ray.get(reference)
    except ray.exceptions.RayError as error:
        return failed(error)
    return received


def usual_workers(shards: int, device: str) -> int:
    """Return the default number of processes for ``shards`` of a language model's work; one on a GPU."""
    if device != "cpu":
        return 1
    return max(1, min(cores(), MOST_WORKERS, shards // FEW_SHARDS))


def choose_executor(
    name: ExecutorName,
    *,
    workers: int | None = None,
    address: str | None = None,
    default_workers: int = 1,
    retries: int = RETRIES,
    gpus: float = 0,
) -> Executor:
    """Return the executor of a name; ConfigError if a setting is for the other executor, or ``workers`` is below 1."""
    if name == "ray":
        if workers is not None:
            raise ConfigError(
                f"workers is for the embedded executor; received {workers} with ray, which uses the whole cluster."
            )
        return OnRay(address, retries, gpus)
    if address is not None:
        raise ConfigError(f"address is for the ray executor; received {address!r} with embedded.")
    count = default_workers if workers is None else workers
    if count < 1:
        raise ConfigError(f"workers must be 1 or more; received {count}.")
    if count == 1:
        return Serial(retries)
    return Processes(count, retries)
