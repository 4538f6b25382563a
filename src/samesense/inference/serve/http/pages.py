"""Web pages: shared parts are inserted into each, and each is served with a content security policy."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from fastapi import FastAPI, Response

SHARED = {"/* shared.css */": "shared.css", "// shared.js": "shared.js"}
"""Placeholder in a page, and the file that replaces it."""


def page_of(name: str) -> str:
    """Return a page of the folder ``page``, with the shared files inserted."""
    folder = files("samesense.inference.serve").joinpath("page")
    page = folder.joinpath(name).read_text(encoding="utf-8")
    for mark, file in SHARED.items():
        page = page.replace(mark, folder.joinpath(file).read_text(encoding="utf-8").rstrip())
    return page


def add_page(app: FastAPI, name: str) -> None:
    """Have an application answer ``GET /`` with a page, with a policy under which only its own script and style run."""
    page = page_of(name)
    headers = {"Content-Security-Policy": policy(page), "Referrer-Policy": "no-referrer"}

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(page, media_type="text/html", headers=headers)


def policy(page: str) -> str:
    """Return a content security policy under which only the page's own script and style run."""

    def content_hash(tag: str) -> str:
        # A browser hashes exactly what stands between the tags.
        content = page.partition(f"<{tag}")[2].partition(">")[2].partition(f"</{tag.split()[0]}>")[0]
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {content_hash('script')}; style-src {content_hash('style')}; "
        "connect-src 'self'; img-src data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    )
