"""The web page on which a person labels pairs, served to this machine only."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI

from samesense.execution.progress import close_progress
from samesense.inference.labelling.desk import Desk
from samesense.inference.serve.http.exception_handlers import add_exception_handlers
from samesense.inference.serve.http.labels import from_the_page
from samesense.inference.serve.http.middleware import RequestMiddleware
from samesense.inference.serve.http.pages import add_page
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.run import LOOPBACK, run_app
from samesense.inference.serve.schemas import OwnForm
from samesense.inference.serve.traffic import Traffic


class LabelRequest(OwnForm):
    """A label for the pair that is shown."""

    pair: int
    score: int


class SkipRequest(OwnForm):
    """The pair that is shown, to be shown again later."""

    pair: int


class UndoRequest(OwnForm):
    """The pair that was labelled last."""

    undone: int


def build_app(desk: Desk, traffic: Traffic) -> FastAPI:
    """Return the ASGI application of a desk, which only answers requests to this machine."""
    app = FastAPI(title="samesense label", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(RequestMiddleware, traffic=traffic, hosts=LOOPBACK)
    add_exception_handlers(app)
    add_page(app, "label.html")

    # All handlers are async, so that they run one at a time and the desk needs no lock.
    @app.get("/state")
    async def state() -> dict[str, Any]:
        return desk.state()

    @app.post("/label", dependencies=[Depends(from_the_page)])
    async def label(form: LabelRequest) -> dict[str, Any]:
        desk.label(form.pair, form.score)
        return desk.state()

    @app.post("/skip", dependencies=[Depends(from_the_page)])
    async def skip(form: SkipRequest) -> dict[str, Any]:
        desk.skip(form.pair)
        return desk.state()

    @app.post("/undo", dependencies=[Depends(from_the_page)])
    async def undo(form: UndoRequest) -> dict[str, Any]:
        desk.undo(form.undone)
        return desk.state()

    return app


def run(desk: Desk, port: int) -> None:
    """Serve the page until Ctrl-C or SIGTERM; ConfigError if the port is taken."""
    close_progress()
    traffic = Traffic(Limits())
    run_app(build_app(desk, traffic), traffic, "labelling, until Ctrl+C,", host="127.0.0.1", port=port)
