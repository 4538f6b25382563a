"""Run the server until it is told to stop, and then finish what was accepted."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Sequence
from types import FrameType

import uvicorn

from samesense.errors import ConfigError
from samesense.inference.serve.app import build_app
from samesense.inference.serve.service import Service, Serving

logger = logging.getLogger(__name__)


class GracefulServer(uvicorn.Server):
    """A server that, told to stop, refuses new requests with 503 until the accepted ones are answered.

    A second signal stops it at once.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._until = 0.0

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Open the port, and log its address."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            logger.info(f"serving {self._service.serving.name!r} at http://{shown}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, at the second signal without waiting."""
        if self._service.stopping:
            self.should_exit = self.force_exit = True
            return
        self._until = time.monotonic() + self._service.serving.limits.grace
        self._service.stopping = True
        logger.info(f"{signal.Signals(sig).name}: finishing {self._service.running} requests")

    async def on_tick(self, counter: int) -> bool:
        """Leave when everything accepted is answered, or the time for it is over."""
        # A request that is answered may still be on its way to a slow caller: that is one of uvicorn's tasks.
        done = not self._service.running and not self.server_state.tasks
        if self._service.stopping and (done or time.monotonic() > self._until):
            self.should_exit = True
        return await super().on_tick(counter)


def serve(serving: Serving, *, host: str = "127.0.0.1", port: int = 8000, keys: Sequence[str] = ()) -> None:
    """Serve until SIGTERM or SIGINT, then answer what was accepted and return; port 0 takes a free one.

    Any of ``keys`` lets callers in, none lets everyone in. ConfigError if the address cannot be listened on, ModelError
    if the model cannot encode a text.
    """
    service = Service(serving)
    config = uvicorn.Config(
        build_app(service, keys=keys), host=host, port=port, log_level="warning", access_log=False, lifespan="on",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    if host not in ("127.0.0.1", "::1", "localhost") and not keys:
        logger.info("anyone who reaches this address may use the server; --api-key-file FILE asks for a key")
    server = GracefulServer(config, service)
    try:
        server.run()
    except SystemExit as error:
        raise ConfigError(f"Cannot listen on {host}:{port}; is something else there? Give another --port.") from error
