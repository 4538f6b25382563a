"""Kill writers of a collection and look at what they leave; as a program it prints how often which state was found.

First each change is made by a process that ends, without any clean-up, at its first step, its second, and so on: a step
is a statement that SQLite runs, or a file that is opened or removed. Then writers that go on changing a collection are
killed from outside at random moments.
"""

import os
import random
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

from samesense.errors import DataError
from samesense.inference.collection import store
from samesense.inference.collection.collection import Collection, Entry
from tests.inference.made_vectors import embedder


def batch(number, size=6):
    return [Entry(f"batch {number} text {i}", metadata={"batch": number}) for i in range(size)]


def contents(folder):
    """What a new reader finds, vectors checked against texts; None if there is no collection."""
    try:
        collection = Collection.open(folder)
    except DataError as error:
        assert "holds no collection" in str(error), error
        return None
    entries = {entry.id: (entry.text, entry.metadata["batch"]) for entry in collection}
    texts = [text for text, _ in entries.values()]
    for text, answer in zip(texts, collection.query(texts, embedder(), top=1), strict=True):
        assert answer[0].text == text
        assert abs(answer[0].score - 1) < 1e-12
    return entries


def changes():
    """(name, is there a collection before, change) of every kind of change."""
    both, newer = [*batch(1), *batch(2)], [Entry(f"newer {i}", i, {"batch": 5}) for i in (1, 4)]
    yield "build", False, lambda folder: Collection.build(folder, batch(1), embedder())
    yield "overwrite", True, lambda folder: Collection.build(folder, both, embedder(), overwrite=True)
    yield "add", True, lambda folder: Collection.open(folder).add(batch(3), embedder())
    yield "upsert", True, lambda folder: Collection.open(folder).add(newer, embedder(), upsert=True)
    yield "delete", True, lambda folder: Collection.open(folder).delete([0, 3])
    yield "delete most", True, lambda folder: Collection.open(folder).delete(where="batch = 2")
    yield "compact", True, lambda folder: Collection.open(folder).compact()


def made(folder, exists):
    """A fresh collection, copied from one that is built once; or no collection."""
    shutil.rmtree(folder, ignore_errors=True)
    if exists:
        first = folder.parent / "first"
        if not first.exists():
            Collection.build(first, batch(2), embedder()).add(batch(4, 2), embedder())
        shutil.copytree(first, folder)
    return folder


def dies_at(step, change):
    """Make a change in a child that ends at its step; return whether it ended there."""
    child = os.fork()
    if child == 0:
        steps = 0

        def count(*_):
            nonlocal steps
            steps += 1
            if steps == step:
                os._exit(9)

        def hear(event, arguments):
            if event in ("open", "os.remove", "os.mkdir", "os.rename") and "killed" in str(arguments[0]):
                count()

        sys.addaudithook(hear)
        connect = store.connect

        def watched(folder, *, write=False):
            db = connect(folder, write=write)
            db.set_trace_callback(count)
            return db

        store.connect = watched
        change()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), code
    return code == 9


def at_steps(folder, stride):
    before = after = 0
    for name, exists, change in changes():
        old = contents(made(folder / "old", exists))
        change(made(folder / "new", exists))
        new = contents(folder / "new")
        step = 1
        while dies_at(step, partial(change, made(folder / "killed", exists))):
            state = contents(folder / "killed")
            assert state in (old, new), (name, step, state)
            before, after = before + (state == old), after + (state == new and new != old)
            change(folder / "killed") if state == old else None  # the next writer is not in the way of anything
            assert contents(folder / "killed") == new, (name, step)
            files = [path for path in (folder / "killed").iterdir() if not path.name.startswith(store.DATABASE)]
            assert state != old or len(files) == 1, (name, step, files)
            step += stride
    return before, after


def keep_changing(folder, report):
    """Add batches, delete old ones, compact, and report each change that is done."""
    collection = Collection.open(folder)
    number = 1 + max((batch for _, batch in contents(folder).values()), default=0)
    while True:
        collection.add(batch(number, 10), embedder())
        os.write(report, f"+{number}\n".encode())
        if number % 3 == 0:
            collection.delete(where={"batch": number - 2})
            os.write(report, f"-{number - 2}\n".encode())
        if number % 5 == 0:
            collection.compact()
        number += 1


def at_random(root, kills):
    """Kill writers; what they reported must be there, whole, and at most one change more."""
    folder = root / "random"
    Collection.build(folder, batch(0, 10), embedder())
    chance = random.Random(0)
    expected = {0}
    for _ in range(kills):
        reader, report = os.pipe()
        child = os.fork()
        if child == 0:
            keep_changing(folder, report)
        os.close(report)
        time.sleep(chance.uniform(0.01, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reader) as stream:
            for line in stream:
                expected ^= {int(line[1:])}
        batches = [number for _, number in contents(folder).values()]
        assert all(batches.count(number) == 10 for number in batches), "half a batch"
        assert len(expected ^ set(batches)) <= 1, (expected, set(batches))
        expected = set(batches)
    return kills


if __name__ == "__main__":
    store.WAIT = 5.0
    os.fsync = lambda handle: None  # it guards against loss of power, and takes long
    root = Path(sys.argv[1])
    stride = int(sys.argv[2])
    kills = int(sys.argv[3])
    before, after = at_steps(root, stride)
    sys.stdout.write(f"{before} {after} {at_random(root, kills)}\n")
