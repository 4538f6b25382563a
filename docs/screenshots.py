"""Pictures of pages in a browser, light and 1300 pixels wide: ``python docs/screenshots.py MODEL SENTENCES``.

MODEL is what the server's page asks, SENTENCES a file of texts for a map. Both pictures go to ``docs/images``.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.inference.serve.browser import Page, browser

IMAGES = Path(__file__).parent / "images"
WIDTH = 1300
PORT = 18766
COLLECTION = """\
There is a delay on the railway.
The train to the city is late.
Two children run in the garden.
She is practising a piece of music.
The shop closes at noon.
"""
ASK = """
document.querySelector('#query').value = 'public transport problems';
document.querySelector('#top').value = 4;
for (const form of ['compare', 'explain', 'heatmap', 'search']) document.getElementById(form).requestSubmit();
"""
ANSWERED = "document.querySelectorAll('.answer > *').length >= 4 && document.querySelector('#search li') !== null"


def run(*words: str) -> None:
    """Run a command of samesense."""
    subprocess.run([sys.executable, "-m", "samesense", *words], check=True)


def draw_server_page(page: Page, model: str, folder: Path) -> None:
    """Draw the page of a server with a small collection, after every form has been answered."""
    texts = folder / "texts.txt"
    texts.write_text(COLLECTION, encoding="utf-8")
    run("index", "build", str(folder / "collection"), str(texts), "--model", model)
    words = ["serve", model, "--collection", str(folder / "collection"), "--port", str(PORT)]
    server = subprocess.Popen([sys.executable, "-m", "samesense", *words])
    address = f"http://127.0.0.1:{PORT}/"
    try:
        wait_for(address + "health")
        page.open(address, "document.querySelector('#facts')?.textContent.includes('dimensions')")
        page.run(ASK)
        page.wait(ANSWERED)
        save(page, IMAGES / "serve.png")
    finally:
        server.terminate()
        server.wait(20)


def wait_for(address: str) -> None:
    """Wait up to a minute until a server answers."""
    for _ in range(120):
        try:
            urllib.request.urlopen(address).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit(f"{address} does not answer")


def draw_map(page: Page, model: str, texts: Path, folder: Path) -> None:
    """Draw the map of near-duplicates of a file, with a removed text pointed at."""
    path = folder / "map.html"
    kept = folder / "kept.txt"
    run("dedup", str(texts), "--model", model, "--threshold", "0.8", "--output", str(kept), "--map", str(path))
    page.open(path.as_uri(), "document.querySelector('.map') !== null")
    save(page, IMAGES / "map.png", until=".map", point_at=".map .series-2")


def save(page: Page, path: Path, until: str = "main", point_at: str = "") -> None:
    """Save a page from its top to the end of an element, with the pointer at another."""
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.send("Emulation.setDeviceMetricsOverride", width=WIDTH, height=800, deviceScaleFactor=1, mobile=False)
    page.send("Emulation.setScrollbarsHidden", hidden=True)
    time.sleep(1)  # the page is laid out again
    height = page.run(f"Math.ceil(document.querySelector('{until}').getBoundingClientRect().bottom + scrollY) + 20")
    page.send("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
    page.run("document.activeElement.blur(); scrollTo(0, 0)")
    if point_at:
        box = page.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector('{point_at}').getBoundingClientRect())"
        )
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    time.sleep(1)
    path.write_bytes(page.screenshot())


def main(model: str, texts: str) -> None:
    """Draw both pictures."""
    with TemporaryDirectory() as folder, browser(width=WIDTH) as page:
        draw_server_page(page, model, Path(folder))
        draw_map(page, model, Path(texts), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
