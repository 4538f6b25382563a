"""Run the server until it is stopped; requests accepted by then are still answered."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.logging import DefaultFormatter

from samesense.errors import ConfigError
from samesense.execution.audience import say
from samesense.inference.serve.http.app import build_app
from samesense.inference.serve.http.connections import BoundedProtocol, Complaints, Patience
from samesense.inference.serve.http.hosts import allowed_names
from samesense.inference.serve.http.labels import LabelFile
from samesense.inference.serve.services import Services, leave_out_of_collections
from samesense.inference.serve.traffic import Traffic

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine that reach no other machine."""

CHECKED = 10
"""Ticks of uvicorn, of 0.1 s, between two checks of the connections."""


class GracefulServer(uvicorn.Server):
    """A server that, once stopped, refuses new requests with 503 until the accepted ones are answered.

    A second signal stops it at once.
    """

    def __init__(self, config: uvicorn.Config, traffic: Traffic, what: str) -> None:
        super().__init__(config)
        self._traffic = traffic
        self._what = what
        self._until = 0.0
        self._patience = Patience(traffic.limits)

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Open the port, and log its address."""
        asyncio.get_running_loop().set_exception_handler(Complaints())
        await super().startup(sockets)  # type: ignore[arg-type]
        leave_out_of_collections()
        if self.started:
            # With port 0 only the socket knows the port.
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            address = f"[{host}]" if ":" in host else host
            say(logger, f"{self._what} at http://{address}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; at the second signal stop without waiting."""
        if self._traffic.stopping:
            self.should_exit = self.force_exit = True
            return
        self._until = time.monotonic() + self._traffic.limits.grace
        self._traffic.stopping = True
        logger.info(f"{signal.Signals(sig).name}: finishing {self._traffic.running} requests")

    async def on_tick(self, counter: int) -> bool:
        """Exit once all accepted requests are answered or the grace period is over; check connections once a second."""
        if self._traffic.stopping:
            # At every tick, since bodies may begin to arrive after the signal.
            self._traffic.give_up_arriving()
        if counter % CHECKED == 0:
            self._patience.check(self.server_state.connections)
        # An answer may still be on its way to a slow client; then uvicorn has a task for it.
        done = not self._traffic.running and not self.server_state.tasks
        if self._traffic.stopping and (done or time.monotonic() > self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def serve(
    services: Services,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    keys: Sequence[str] = (),
    hosts: Sequence[str] = (),
    labels: LabelFile | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then answer the accepted requests and return; port 0 takes a free one.

    Clients must send one of ``keys``; without keys everyone is let in. The Host header must name one of ``hosts`` or
    this machine; without ``hosts`` any name is allowed, except where there is no key and the server listens on this
    machine only. ``labels`` stores the labels given on the page. ConfigError if the server cannot listen there.
    """
    check_port(port)
    # A server on loopback without a key is what DNS rebinding attacks; elsewhere a key or the network protects it.
    if hosts or (not keys and host in LOOPBACK):
        allowed = (*hosts, *LOOPBACK)
    else:
        allowed = ()
    app = build_app(services, keys=keys, hosts=allowed_names(allowed), labels=labels)
    if host not in LOOPBACK and not keys:
        logger.info("anyone who reaches this address may use the server; `api_key_file` asks for a key")
    names = ", ".join(repr(service.serving.name) for service in services.all)
    run_app(app, services, f"serving {names}", host=host, port=port)


def check_port(port: int) -> None:
    """Raise ConfigError for an invalid port."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"A port is 0 to 65535; received {port}. Give another `port`.")


def run_app(app: FastAPI, traffic: Traffic, what: str, *, host: str, port: int) -> None:
    """Run an application until it is stopped, logging ``what`` it does and where; ConfigError if it cannot listen."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        http=BoundedProtocol,
        # The grace period is over by then, or nothing is left to wait for.
        timeout_graceful_shutdown=1,
    )
    _show_warnings_of_uvicorn()
    server = GracefulServer(config, traffic, what)
    try:
        _run_in_own_loop(server)
    except SystemExit as error:  # uvicorn exits when it cannot listen
        raise ConfigError(f"Cannot listen on {host}:{port}; is something else there? Give another `port`.") from error


def _show_warnings_of_uvicorn() -> None:
    """Write them to standard error, in uvicorn's form, where the program keeps no logs.

    It replaces uvicorn's configuration, which closes every handler of the process.
    """
    uvicorn_logger = logging.getLogger("uvicorn")
    if uvicorn_logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(DefaultFormatter("%(levelprefix)s %(message)s"))
    uvicorn_logger.addHandler(handler)


def _run_in_own_loop(server: GracefulServer) -> None:
    """Run a server until it is stopped; in a notebook, whose event loop is running already, in another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # No loop is running, as everywhere outside notebooks.
        server.run()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="server") as thread:
        running = thread.submit(server.run)
        try:
            running.result()
        except KeyboardInterrupt:
            # uvicorn handles signals in the main thread only, so that Ctrl-C arrives here.
            server.handle_exit(signal.SIGINT, None)
            running.result()
