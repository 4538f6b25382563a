import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.errors import ModelError
from samesense.inference.serve.batching import Batcher
from samesense.inference.serve.errors import RequestError


def with_batcher(use, run, **settings):
    """Run ``use(batcher)`` in a fresh event loop."""

    async def main():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(run, executor, **{"batch_tokens": 20, "queue_tokens": 10_000, **settings})
            batcher.start()
            try:
                return await asyncio.wait_for(use(batcher), 20)
            finally:
                await batcher.stop()

    return asyncio.run(main())


def as_rows(items):
    return np.array([[hash(item), 1] for item in items], dtype=np.int64)


requests = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.just(0)), min_size=1, max_size=25), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=60)
@given(requests=requests, budget=st.integers(1, 40))
def test_every_request_gets_its_own_rows_and_no_batch_is_too_large(requests, budget):
    """Sizes belong to items: item i has 1 + i % 7 tokens."""
    batches = []

    def run(items):
        batches.append(list(items))
        return as_rows(items)

    async def use(batcher):
        return await asyncio.gather(*(batcher.submit(rows, [1 + i % 7 for i, _ in rows]) for rows in requests))

    answers = with_batcher(use, run, batch_tokens=budget)
    for request, answer in zip(requests, answers, strict=True):
        np.testing.assert_array_equal(answer, as_rows(request))
    for batch in batches:
        assert len(set(batch)) == len(batch)
        assert sum(1 + i % 7 for i, _ in batch) <= budget or len(batch) == 1
    assert {item for batch in batches for item in batch} == {item for request in requests for item in request}


def test_requests_that_wait_together_share_batches_and_equal_texts_are_computed_once():
    batches = []

    def run(items):
        batches.append(sorted(items))
        return as_rows(items)

    async def use(batcher):
        await asyncio.gather(*(batcher.submit([f"text {i % 5}"], [2]) for i in range(50)))

    with_batcher(use, run, wait=0.01)
    assert batches == [[f"text {i}" for i in range(5)]]


def test_a_long_request_does_not_hold_up_a_short_one():
    done = []

    async def use(batcher):
        async def ask(name, count):
            await batcher.submit([f"{name} {i}" for i in range(count)], [1] * count)
            done.append(name)

        await asyncio.gather(ask("long", 200), ask("short", 3))

    batches = []

    def run(items):
        batches.append(items)
        return as_rows(items)

    with_batcher(use, run)
    assert done == ["short", "long"]
    assert {f"short {i}" for i in range(3)} <= set(batches[0])
    assert len(batches) == 11


def test_only_the_guilty_request_fails():
    def run(items):
        if "bad" in items:
            raise ValueError("cannot read this")
        return as_rows(items)

    async def use(batcher):
        requested = [["a"], ["b", "bad"], ["c", "a"]]
        return await asyncio.gather(*(batcher.submit(x, [1] * len(x)) for x in requested), return_exceptions=True)

    first, second, third = with_batcher(use, run, wait=0.01)
    np.testing.assert_array_equal(first, as_rows(["a"]))
    assert isinstance(second, ValueError)
    np.testing.assert_array_equal(third, as_rows(["c", "a"]))


def test_a_missing_row_is_an_error_not_another_ones_row():
    with pytest.raises(ModelError, match="one row for each of 3 inputs; it gave 2"):
        with_batcher(lambda batcher: batcher.submit(["a", "b", "c"], [1] * 3), lambda items: as_rows(items[:2]))


def test_a_full_queue_refuses_and_empties_again_when_callers_go():
    async def use(batcher):
        batcher._worker.cancel()  # nothing is computed, so everything waits
        waiting = [asyncio.ensure_future(batcher.submit([i], [40])) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as refused:
            await batcher.submit(["more"], [30])
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return refused.value, batcher.queued

    refusal, queued = with_batcher(use, as_rows, queue_tokens=100)
    assert (refusal.status, refusal.code, refusal.retry_after) == (429, "queue_full", 1)
    assert "holds 80 of 100 tokens and has no room for 30 more" in refusal.message
    assert queued == 0


def test_a_request_larger_than_the_queue_is_served_when_nothing_else_is_there():
    async def use(batcher):
        return await batcher.submit(list(range(50)), [5] * 50)

    np.testing.assert_array_equal(with_batcher(use, as_rows, queue_tokens=100), as_rows(range(50)))


def test_a_cancelled_caller_leaves_and_the_others_are_answered():
    computed, has_gone = [], Event()

    def run(items):
        computed.extend(items)
        if len(computed) >= 40:
            has_gone.wait()
        return as_rows(items)

    async def use(batcher):
        gone = asyncio.ensure_future(batcher.submit([f"gone {i}" for i in range(500)], [1] * 500))
        stays = asyncio.ensure_future(batcher.submit([f"stays {i}" for i in range(100)], [1] * 100))
        while len(computed) < 40:
            await asyncio.sleep(0.001)
        gone.cancel()
        await asyncio.wait([gone])
        has_gone.set()
        return await stays, batcher.queued

    rows, queued = with_batcher(use, run)
    np.testing.assert_array_equal(rows, as_rows([f"stays {i}" for i in range(100)]))
    assert queued == 0
    assert sum(item.startswith("gone") for item in computed) < 500


def test_a_long_request_takes_an_equal_share_of_a_batch_beside_short_ones_and_all_of_it_alone():
    batches = []
    started, free = Event(), Event()

    def run(items):
        started.set()
        free.wait(20)
        batches.append(list(items))
        return as_rows(items)

    async def use(batcher):
        first = asyncio.create_task(batcher.submit(["first"], [1]))
        await asyncio.to_thread(started.wait, 20)
        long = [f"long {i}" for i in range(200)]
        tasks = [asyncio.create_task(batcher.submit(long, [1] * 200))]
        tasks += [asyncio.create_task(batcher.submit([f"short {i}"], [1])) for i in range(9)]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(first, *tasks)

    with_batcher(use, run, batch_tokens=100)
    assert [len(batch) for batch in batches] == [1, 10 + 9, 100, 90]
