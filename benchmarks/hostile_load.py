"""Good clients beside one that sends hostile requests: their latency and the server's memory, body by body.

A server is started with a collection. Good clients embed one to four short texts, search and rerank, one request after
the other, without a pause. Each round has a quiet spell, and a spell for every hostile body, in which other clients
send that body repeatedly from a separate process. Each spell records the 99th percentile of the good clients' latency
and the peak growth of the server's resident memory. The table shows medians over the rounds (the maximum for memory),
and the ratio to the quiet spells of the same rounds.

    python benchmarks/hostile_load.py --model default --clients 16 --rounds 3 --seconds 6
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "hostile_load.jsonl"
WORDS = "a man woman child dog train plays runs eats reads late red blue near the house river music".split()


CHUNKED = "#chunked"
"""Suffix of a path: the body is sent in chunks of one byte."""


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def search(where: Any, **fields: Any) -> tuple[str, bytes]:
    return "/search", json.dumps({"query": "a dog", "where": where, **fields}).encode()


def embed(texts: Any) -> tuple[str, bytes]:
    return "/v1/embeddings", json.dumps({"model": "served", "input": texts}, ensure_ascii=False).encode()


def rerank(documents: str) -> tuple[str, bytes]:
    return "/v1/rerank", f'{{"query":"a","documents":{documents}}}'.encode()


def similarity(fields: str) -> tuple[str, bytes]:
    return "/similarity", fields.encode()


def unknown_fields(count: int) -> tuple[str, bytes]:
    return similarity(json.dumps({f"n{i}": 1 for i in range(count)}, separators=(",", ":")))


def sentences(count: int, words: int) -> list[str]:
    source = random.Random(count + words)
    return [" ".join(source.choices(WORDS, k=words)) for _ in range(count)]


BODIES: dict[str, Callable[[], tuple[str, bytes]]] = {
    "where: 35,000 names": lambda: search({f"name {i}": i for i in range(35_000)}),
    "where: 300,000 names": lambda: search({f"name {i}": i for i in range(300_000)}),
    "documents: 1,000,000 numbers": lambda: rerank(f"[{','.join('1' * 1_000_000)}]"),
    "documents: 3,000,000 numbers": lambda: rerank(f"[{','.join('1' * 3_000_000)}]"),
    "600,000 unknown fields": lambda: unknown_fields(600_000),
    "where: [ 1,000 deep": lambda: search("a=" + "[" * 1000),
    "where: objects 1,000 deep": lambda: ("/search", f'{{"query":"a","where":{nested(1000)}}}'.encode()),
    "where: IN of 900,000": lambda: search(f"kind IN ({','.join(map(str, range(900_000)))})"),
    "where: list of 900,000": lambda: search({"kind": list(range(900_000))}),
    "where: name of 7 MB": lambda: search(f"{'n' * 7_000_000} = 1"),
    "8 MB of brackets": lambda: ("/v1/embeddings", b"[" * 8_000_000),
    "8 MB of empty objects": lambda: rerank(f"[{','.join(['{}'] * 2_600_000)}]"),
    "49,000 empty objects": lambda: rerank(f"[{','.join(['{}'] * 49_000)}]"),
    "9,000 unknown fields": lambda: unknown_fields(9_000),
    "49,000 token ids": lambda: embed([[1] * 48 for _ in range(1000)]),
    "one text of 8 MB": lambda: embed("a dog " * 1_300_000),
    "one text of 8 MB of escapes": lambda: ("/v1/embeddings", b'{"input":"' + b"\\u00e9" * 1_300_000 + b'"}'),
    "one text of 8 MB of emoji": lambda: embed("\U0001f621" * 2_000_000),
    "2,048 texts of 4,000 characters": lambda: embed(sentences(2048, 800)),
    "2,048 short texts": lambda: embed(sentences(2048, 5)),
    "where: IN of 64 KB": lambda: search(f"kind IN ({','.join(map(str, range(12_000)))})"),
    "where: 900 comparisons": lambda: search(" OR ".join(f"kind = {i}" for i in range(900))),
    "where: LIKE of 48 KB": lambda: search(f"name LIKE '{'%a' * 24_000}'"),
    "2,048 queries": lambda: ("/search", json.dumps({"query": sentences(2048, 5), "hybrid": True}).encode()),
    "200 queries of 1,000 words": lambda: (
        "/search",
        json.dumps({"query": [" ".join(f"w{i + n}" for i in range(1000)) for n in range(200)], "words": True}).encode(),
    ),
    "similarity of 200 texts": lambda: similarity(json.dumps({"texts": sentences(200, 50)})),
    "explain 2,000 words": lambda: (
        "/explain",
        json.dumps({"text1": " ".join(sentences(1, 1000)), "text2": " ".join(sentences(1, 1000))}).encode(),
    ),
    "400,000 chunks of one byte": lambda: (f"/v1/embeddings{CHUNKED}", b"[" + b"1," * 200_000),
    "UTF-16": lambda: ("/v1/embeddings", json.dumps({"input": ["a"] * 100_000}).encode("utf-16")),
}
"""The faults found on 26 November 2026 first, then others."""


class Connection:
    """A keep-alive connection, reopened after the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        try:
            return await self._ask(path, body)
        except (OSError, asyncio.IncompleteReadError):
            await self.close()
            return 0, b""

    async def _ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        reader, writer = self.streams
        route = path.removesuffix(CHUNKED)
        head = f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        if route == path:
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        else:
            writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
            writer.write(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith("content-length:")), None)
        # without a length an answer ends with its connection
        content = await (reader.read() if length is None else reader.readexactly(length))
        if length is None or "connection: close" in lines:
            await self.close()
        return int(lines[0].split()[1]), content

    async def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def good_client(number: int, port: int, end: float, seconds: list[float], wrong: Counter[str]) -> None:
    """Send requests until ``end``, and record the latency of each answer."""
    source = random.Random(number)
    connection = Connection(port)
    while time.monotonic() < end:
        texts = [" ".join(source.choices(WORDS, k=source.randint(3, 12))) for _ in range(source.choice([1, 1, 2, 4]))]
        kind = source.random()
        path = "/v1/embeddings"
        form = {"input": texts, "encoding_format": "base64"}
        if kind < 0.15:
            path = "/search"
            form = {"query": texts, "top": 5}
        elif kind < 0.25:
            path = "/v1/rerank"
            form = {"query": texts[0], "documents": [*texts, "a red house", "late trains"]}
        started = time.perf_counter()
        status, _ = await connection.ask(path, json.dumps(form).encode())
        seconds.append(time.perf_counter() - started)
        if status != 200:
            wrong[f"{path} {status}"] += 1
    await connection.close()


async def hostile_client(port: int, end: float, path: str, body: bytes, outcomes: Counter[str]) -> None:
    connection = Connection(port)
    while time.monotonic() < end:
        status, content = await connection.ask(path, body)
        outcomes[str(status)] += 1
        if status not in (0, 200) and len(content) > 2000:
            outcomes["long error"] += 1
        if status in (0, 413, 429):
            await asyncio.sleep(0.01)
    await connection.close()


def resident(pid: int, field: str = "VmHWM") -> float:
    """Return a memory field of ``/proc/PID/status`` in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no {field}")


async def send_hostile(port: int, name: str, seconds: float, clients: int) -> None:
    """Run the hostile clients in their process: make the body, wait for the start, send it until the end."""
    path, body = BODIES[name]()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    await asyncio.gather(*(hostile_client(port, end, path, body, outcomes) for _ in range(clients)))
    print(json.dumps(outcomes))


async def spell(arguments: argparse.Namespace, port: int, pid: int, name: str | None) -> dict[str, Any]:
    """Run the good clients for a time, beside hostile ones in a separate process; return the figures."""
    sender = None
    if name is not None:
        words = [sys.executable, __file__, "--send", name, "--port", port, "--hostile", arguments.hostile]
        words += ["--seconds", arguments.seconds]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        sender = await asyncio.create_subprocess_exec(*map(str, words), **pipes)
        assert sender.stdout is not None  # noqa: S101
        await sender.stdout.readline()
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets the peak
    before = resident(pid, "VmRSS")
    seconds: list[float] = []
    wrong: Counter[str] = Counter()
    end = time.monotonic() + arguments.seconds
    tasks = [asyncio.create_task(good_client(i, port, end, seconds, wrong)) for i in range(arguments.clients)]
    outcomes: dict[str, int] = {}
    if sender is not None:
        content, _ = await sender.communicate(b"\n")
        outcomes = json.loads(content)
    await asyncio.gather(*tasks)
    await asyncio.sleep(0.5)
    ordered = sorted(seconds)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[int(len(ordered) * 0.99)],
        "memory": resident(pid) - before,
        "resident": resident(pid, "VmRSS"),
        "answers": len(ordered),
        "wrong": dict(wrong),
        "hostile": outcomes,
    }


def build_collection(model: str, folder: Path, count: int) -> Path:
    rows = [
        json.dumps({"text": f"{text} {number}", "kind": number % 50, "name": text[:20]})
        for number, text in enumerate(sentences(count, 6))
    ]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    collection = folder / "collection"
    words = ["index", "build", collection, folder / "texts.jsonl", "--columns", "text", "--model", model]
    subprocess.run([sys.executable, "-m", "samesense", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return collection


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def measure(arguments: argparse.Namespace, collection: Path) -> list[dict[str, Any]]:
    port = free_port()
    words = ["serve", f"served={arguments.model}", "--collection", collection, "--port", port]
    server = subprocess.Popen(
        [sys.executable, "-m", "samesense", *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert server.stderr is not None  # noqa: S101
    log: list[bytes] = []
    while b" at http" not in (line := server.stderr.readline()):
        if not line:
            raise SystemExit(b"".join(log).decode())
        log.append(line)
    reading = asyncio.create_task(asyncio.to_thread(lambda: log.extend(server.stderr or ())))
    chosen = [name for name in BODIES if arguments.only in name]
    spells: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    try:
        await spell(arguments, port, server.pid, None)
        for _ in range(arguments.rounds):
            spells["quiet"].append(await spell(arguments, port, server.pid, None))
            print("quiet", spells["quiet"][-1], file=sys.stderr, flush=True)
            for name in chosen:
                spells[name].append(await spell(arguments, port, server.pid, name))
                print(name, spells[name][-1], file=sys.stderr, flush=True)
        spells["quiet again"] = [await spell(arguments, port, server.pid, None) for _ in range(arguments.rounds)]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        await reading
    tracebacks = b"".join(log).count(b"Traceback")
    quiet = spells["quiet"]
    table = []
    for name, rounds in spells.items():
        middle = {key: statistics.median(figures[key] for figures in rounds) for key in ("p50", "p99")}
        pairs = zip(rounds, quiet, strict=True)
        table.append(
            {
                "body": name,
                "p50_ms": round(1000 * middle["p50"], 1),
                "p99_ms": round(1000 * middle["p99"], 1),
                "factor": round(statistics.median(figures["p99"] / still["p99"] for figures, still in pairs), 2),
                "memory_mb": round(max(figures["memory"] for figures in rounds)),
                "resident_mb": round(rounds[-1]["resident"]),
                "answers": sum(figures["answers"] for figures in rounds),
                "wrong": dict(sum((Counter(figures["wrong"]) for figures in rounds), Counter())),
                "hostile": dict(sum((Counter(figures["hostile"]) for figures in rounds), Counter())),
            }
        )
    table[0]["tracebacks"] = tracebacks
    return table


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--hostile", type=int, default=1, help="clients that send a hostile body")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--only", default="", help="hostile bodies with this in their name")
    parser.add_argument("--texts", type=int, default=5000, help="texts of the collection")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file to which the figures are added")
    parser.add_argument("--send", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.send:
        asyncio.run(send_hostile(arguments.port, arguments.send, arguments.seconds, arguments.hostile))
        return
    with tempfile.TemporaryDirectory() as folder:
        collection = build_collection(arguments.model, Path(folder), arguments.texts)
        table = asyncio.run(measure(arguments, collection))
    for row in table:
        print(
            f"{row['body']:34} p50 {row['p50_ms']:8.1f}  p99 {row['p99_ms']:8.1f} ms  x{row['factor']:5.2f}  "
            f"{row['memory_mb']:+5} MB of {row['resident_mb']}  {row['wrong'] or ''} {row['hostile'] or ''}"
        )
    facts = {"model": Path(arguments.model).name, "processor": processor(), "clients": arguments.clients}
    facts |= {"hostile": arguments.hostile, "rounds": arguments.rounds, "seconds": arguments.seconds, "table": table}
    arguments.results.parent.mkdir(exist_ok=True)
    with arguments.results.open("a") as stream:
        stream.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
