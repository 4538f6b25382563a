"""Load: many clients for minutes on our server and on plain FastAPI + sentence-transformers ones, in turns in one run.

Clients send one to sixteen texts of mixed lengths; a few send nonsense or hang up. Every vector is compared with
offline encoding of the same texts. Halfway through, every server is stopped and started again, and clients retry.
Throughput is measured while the server is up, latency on requests accepted at the first try. A lost or mixed-up answer
of our server is counted and makes the exit code 1.

    python benchmarks/load.py --model default --clients 64 --minutes 5 --data stsb.test.tsv.gz
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import platform
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "load.jsonl"
NONSENSE = [b"{", b'{"model": "served"}', b'{"model": "served", "input": [""]}', b'{"input": {"a": 1}}', b"[[[["]
IN_TURN = "in-turn"
TRIES = 400
PAUSE = 0.1
FLOOR = 0.999
"""Minimum cosine with the offline vector; the number of texts nearer to another one is printed at the start."""


def plain_server(model: str, port: int, *, in_turn: bool) -> None:
    """Serve the obvious way: one endpoint, which encodes the texts of a request in a thread of the pool.

    ``in_turn`` encodes one request after the other, so that the threads of many requests do not share the cores.
    """
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sentence_transformers import SentenceTransformer

    class Wanted(BaseModel):
        model: str
        input: list[str]

    encoder = SentenceTransformer(model)
    turn = threading.Lock() if in_turn else nullcontext()
    app = FastAPI()

    def embeddings(body: Wanted) -> dict[str, Any]:
        with turn:
            rows = encoder.encode(body.input, normalize_embeddings=True, show_progress_bar=False)
        data = [{"embedding": base64.b64encode(row.astype("<f4").tobytes()).decode()} for row in rows]
        return {"data": data}

    embeddings.__annotations__["body"] = Wanted
    app.post("/v1/embeddings")(embeddings)
    app.get("/health")(lambda: {"status": "ok"})
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def our_server(model: str, port: int, precision: str) -> list[str]:
    words = ["-m", "samesense", "serve", f"served={model}", "--port", str(port), "--precision", precision]
    return [sys.executable, *words]


@dataclass
class Tally:
    """Outcomes that the clients of one server have counted."""

    seconds: list[float] = field(default_factory=list)
    texts: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    lowest: float = 1.0
    answers: int = 0
    up: float = 0.0
    down: float = 0.0


@dataclass
class Server:
    """A server process on its own port."""

    command: list[str]
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)

    def stop(self) -> int:
        assert self.process is not None  # noqa: S101
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    async def ready(self, seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                if (await request(self.port, "GET", "/health"))[0] == 200:
                    return
            except (OSError, asyncio.IncompleteReadError):
                pass
            if time.monotonic() > end or (self.process is not None and self.process.poll() is not None):
                raise SystemExit(f"did not start: {' '.join(self.command)}")
            await asyncio.sleep(0.2)


async def request(port: int, method: str, path: str, body: bytes = b"", *, hang_up: bool = False) -> tuple[int, bytes]:
    """Send one request on a new connection; return (status, content), or (0, b"") for a client that hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        if hang_up:
            return 0, b""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line[15:]) for line in lines if line.lower().startswith("content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)
    finally:
        writer.close()


async def answered(port: int, body: bytes, tally: Tally) -> tuple[int, bytes, bool]:
    """Send a request until it is answered; retry while the server is stopping, full or absent.

    Returns status, content, and whether the first try was taken.
    """
    for attempt in range(TRIES):
        try:
            status, content = await request(port, "POST", "/v1/embeddings", body)
        except ConnectionRefusedError:
            tally.outcomes["tried anew: no connection"] += 1
        except (OSError, asyncio.IncompleteReadError):  # taken and dropped, or never taken from the socket's queue
            tally.outcomes["tried anew: closed without an answer"] += 1
        else:
            if status not in (429, 503):
                return status, content, not attempt
            tally.outcomes[f"tried anew: {status}"] += 1
        await asyncio.sleep(PAUSE)
    return 0, b"", False


async def client(number: int, port: int, texts: Sequence[str], rows: np.ndarray, end: float, tally: Tally) -> None:
    """Send one request after the other until the end, and check every vector."""
    source = random.Random(number)
    while time.monotonic() < end:
        kind = source.random()
        if kind < 0.03:
            status, _, _ = await answered(port, source.choice(NONSENSE), tally)
            tally.outcomes["nonsense refused" if status in (400, 404, 422) else f"nonsense got {status}: WRONG"] += 1
            continue
        chosen = [source.randrange(len(texts)) for _ in range(source.choice([1, 1, 1, 4, 16]))]
        form = {"model": "served", "input": [texts[i] for i in chosen], "encoding_format": "base64"}
        body = json.dumps(form).encode()
        if kind < 0.05:
            try:
                await request(port, "POST", "/v1/embeddings", body, hang_up=True)
                tally.outcomes["hung up"] += 1
            except OSError:
                tally.outcomes["tried anew: no connection"] += 1
            continue
        started = time.perf_counter()
        status, content, first = await answered(port, body, tally)
        taken = time.perf_counter() - started
        if status != 200:
            tally.outcomes[f"lost, status {status}: WRONG"] += 1
            continue
        data = json.loads(content)["data"]
        got = np.array([np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in data])
        cosines = np.einsum("ij,ij->i", got, rows[chosen]) if got.shape == rows[chosen].shape else np.array([-1.0])
        tally.lowest = min(tally.lowest, float(cosines.min()))
        tally.outcomes["answered" if cosines.min() > FLOOR else "mixed up: WRONG"] += 1
        if first:
            tally.seconds.append(taken)
        tally.answers += 1
        tally.texts += len(chosen)


async def spell(
    server: Server, texts: Sequence[str], rows: np.ndarray, clients: int, seconds: float, tally: Tally
) -> None:
    """Run all clients against one server for a time, and restart it halfway."""
    server.start()
    await server.ready()
    started = time.monotonic()
    tasks = [asyncio.create_task(client(i, server.port, texts, rows, started + seconds, tally)) for i in range(clients)]
    await asyncio.sleep(seconds / 2)
    stopped = time.monotonic()
    code = await asyncio.to_thread(server.stop)
    tally.outcomes[f"stopped with code {code}"] += 1
    server.start()
    await server.ready()
    tally.down += time.monotonic() - stopped
    await asyncio.gather(*tasks)
    tally.up += time.monotonic() - started
    await asyncio.to_thread(server.stop)


def row_of(name: str, tally: Tally) -> dict[str, Any]:
    """Return the figures of one server."""
    if len(tally.seconds) < 2:
        raise SystemExit(f"{name} answered {len(tally.seconds)} requests; give it more --minutes.")
    seconds = tally.up - tally.down
    cuts = statistics.quantiles(tally.seconds, n=100)
    return {
        "way": name,
        "requests_a_second": tally.answers / seconds,
        "texts_a_second": tally.texts / seconds,
        "p50_ms": 1000 * cuts[49],
        "p99_ms": 1000 * cuts[98],
        "seconds_up": seconds,
        "seconds_down": tally.down,
        "lowest_cosine": tally.lowest,
        "outcomes": dict(tally.outcomes),
    }


def read(data: str | None) -> list[str]:
    """Return texts of mixed lengths: those of the pairs, and joined ones of up to about 200 words."""
    from samesense.data import read_pairs

    source = data or str(Path(__file__).parents[1] / "src/samesense/data/sample/test.tsv")
    pairs = read_pairs(source)
    texts = list(dict.fromkeys([*pairs.sentences1, *pairs.sentences2]))[:1000]
    joined = [" ".join(texts[i : i + n]) for i, n in zip(range(0, len(texts), 10), [3, 8, 15] * 40, strict=False)]
    return list(dict.fromkeys([*texts, *joined]))


def offline(model: str, texts: Sequence[str], precision: Any) -> np.ndarray:
    """Return the unit vectors of all texts, encoded here."""
    import samesense

    rows = samesense.load(model, precision=precision).encode(texts, normalize=True)
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -1)
    twins = int((likeness > FLOOR).any(axis=1).sum())
    print(f"{len(texts)} texts, {twins} of them too like another to notice a mix-up between the two", file=sys.stderr)
    return np.asarray(rows)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", help="file of labelled pairs whose texts are sent [the shipped sample]")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0, help="of each server, in all its rounds")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--plain", nargs=3, metavar=("SOURCE", "PORT", "ORDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.plain:
        plain_server(args.plain[0], int(args.plain[1]), in_turn=args.plain[2] == IN_TURN)
        return 0
    from samesense.encoder.names import resolve

    texts = read(args.data)
    rows = offline(args.model, texts, args.precision)
    ports = [free_port() for _ in range(3)]
    plain = [sys.executable, __file__, "--plain", resolve(args.model)]
    servers = {
        "samesense serve": Server(our_server(args.model, ports[0], args.precision), ports[0]),
        "plain FastAPI": Server([*plain, str(ports[1]), "at-once"], ports[1]),
        "plain FastAPI, one request at a time": Server([*plain, str(ports[2]), IN_TURN], ports[2]),
    }
    tallies = {name: Tally() for name in servers}
    seconds = 60 * args.minutes / args.rounds
    for _ in range(args.rounds):
        for name, server in servers.items():
            asyncio.run(spell(server, texts, rows, args.clients, seconds, tallies[name]))
    figures = [row_of(name, tally) for name, tally in tallies.items()]
    print("| server | requests/s | texts/s | p50 ms | p99 ms | lowest cosine |\n|---|---:|---:|---:|---:|---:|")
    for row in figures:
        numbers = [f"{row[key]:.1f}" for key in ("requests_a_second", "texts_a_second", "p50_ms", "p99_ms")]
        print(f"| {row['way']} | {' | '.join(numbers)} | {row['lowest_cosine']:.6f} |")
    for row in figures:
        print(f"{row['way']}: {', '.join(f'{count} {what}' for what, count in sorted(row['outcomes'].items()))}")
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    facts = {key: getattr(args, key) for key in ("clients", "minutes", "rounds", "precision")}
    facts["model"] = Path(args.model).name
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"benchmark": "load", "machine": machine, **facts, "rows": figures}) + "\n")
    return int(any("WRONG" in what for what in figures[0]["outcomes"]))


if __name__ == "__main__":
    sys.exit(main())
