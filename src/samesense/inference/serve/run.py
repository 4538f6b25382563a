"""Run the server until it is told to stop, and then finish what was accepted."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
import uvicorn
from fastapi import FastAPI

from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.storage import home_of, read
from samesense.inference.collection.collection import Collection, Found
from samesense.inference.collection.conditions import Where
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.serve.app import build_app
from samesense.inference.serve.connections import Complaints, Patience
from samesense.inference.serve.service import Search, Service, Serving
from samesense.inference.serve.traffic import Traffic
from samesense.types import Embeddings, Score

if TYPE_CHECKING:
    from samesense.inference.models.model import Model


logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine that no other machine can answer to."""

CHECKED = 10
"""Tenths of a second between two checks of the connections."""


class GracefulServer(uvicorn.Server):
    """A server that, told to stop, refuses new requests with 503 until the accepted ones are answered.

    A second signal stops it at once.
    """

    def __init__(self, config: uvicorn.Config, traffic: Traffic, what: str) -> None:
        super().__init__(config)
        self._traffic, self._what = traffic, what
        self._until = 0.0
        self._patience = Patience(traffic.limits)

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Open the port, and log its address."""
        asyncio.get_running_loop().set_exception_handler(Complaints())
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            logger.info(f"{self._what} at http://{shown}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, at the second signal without waiting."""
        if self._traffic.stopping:
            self.should_exit = self.force_exit = True
            return
        self._until = time.monotonic() + self._traffic.limits.grace
        self._traffic.stopping = True
        logger.info(f"{signal.Signals(sig).name}: finishing {self._traffic.running} requests")

    async def on_tick(self, counter: int) -> bool:
        """Leave when everything accepted is answered, or the time for it is over."""
        if self._traffic.stopping:
            self._traffic.give_up_arriving()
        if counter % CHECKED == 0:
            self._patience.check(self.server_state.connections)
        # A request that is answered may still be on its way to a slow caller: that is one of uvicorn's tasks.
        done = not self._traffic.running and not self.server_state.tasks
        if self._traffic.stopping and (done or time.monotonic() > self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def serve(
    serving: Serving,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    keys: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was accepted and return; port 0 takes a free one.

    Any of ``keys`` lets callers in, none lets everyone in. Callers name the server by any of ``hosts``, this machine's
    own names among them; where there are none, by any name, unless there is no key and it listens on this machine
    alone. ConfigError if the address cannot be listened on, ModelError if the model cannot encode a text.
    """
    check_port(port)
    named = (*hosts, *LOOPBACK) if hosts or (not keys and host in LOOPBACK) else ()
    service = Service(serving)
    app = build_app(service, keys=keys, hosts=[name.lower() for name in named])
    if host not in LOOPBACK and not keys:
        logger.info("anyone who reaches this address may use the server; --api-key-file FILE asks for a key")
    run_app(app, service, f"serving {serving.name!r}", host=host, port=port)


def check_port(port: int) -> None:
    """Raise ConfigError for what is no port."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"A port is 0 to 65535; received {port}. Give another --port.")


def run_app(app: FastAPI, traffic: Traffic, what: str, *, host: str, port: int) -> None:
    """Say what goes on and where until it is told to stop; ConfigError if the address cannot be listened on."""
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", access_log=False, lifespan="on", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    try:
        GracefulServer(config, traffic, what).run()
    except SystemExit as error:
        raise ConfigError(f"Cannot listen on {host}:{port}; is something else there? Give another --port.") from error


KEY_VARIABLE = "SAMESENSE_API_KEY"


def reranker_of(model: Model) -> Score:
    """Return the score of a cross-encoder, which remembers nothing between calls, as a server runs for long."""
    if model.embeds:
        raise ModelError(f"A reranker must be a cross-encoder; {model.name!r} is none.")
    return model.scores


def open_search(folder: Path, model: Model) -> Search:
    """Return the search in a collection that was built with ``model``."""
    collection = Collection.open(folder)
    collection.check_model(embedder_of(model, "the model to serve"))
    collection.search(np.eye(1, collection.about()["dim"]), top=1)  # says now if a file or usearch is missing
    return search_in(collection)


def open_calibration(model: str, file: Path | None) -> Calibration | None:
    """Return the calibration of ``file``, or the one in the model's folder, or none if neither is there."""
    home = home_of(model)
    if file is None and (home.kept is None or not home.kept.is_file()):
        return None
    return read(home, file)


def search_in(collection: Collection) -> Search:
    """Return the search in a collection; what others add or delete meanwhile shows at once."""

    def search(queries: Embeddings, top: int, where: Where) -> list[list[Found]]:
        return collection.search(queries, top=top, where=where)

    return search


def read_keys(file: Path | None) -> list[str]:
    """Return the keys of a file, one a line, or the one of the environment; none where neither is given."""
    if file is None:
        given = os.environ.get(KEY_VARIABLE)
        if given is not None and not given.strip():
            raise ConfigError(f"{KEY_VARIABLE} is set and empty, which would let everyone in. Give a key, or unset it.")
        return [] if given is None else _checked([given.strip()], KEY_VARIABLE)
    try:
        keys = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read keys from {file}; give a text file with one key a line.") from error
    if not keys:
        raise ConfigError(f"There must be a key in {file}, one a line; it is empty.")
    return _checked(keys, str(file))


def _checked(keys: list[str], place: str) -> list[str]:
    """Refuse keys that clients cannot send alike, without showing them."""
    for number, key in enumerate(keys, 1):
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"A key must be of ASCII letters, digits and signs; key {number} of {place} is not.")
    return keys
