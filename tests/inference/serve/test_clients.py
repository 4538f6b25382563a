"""Many callers at once: every one gets the vectors of its own texts, whatever the others do."""

import random
import socket
import threading

import numpy as np
import pytest

from samesense.inference.serve.limits import Limits
from tests.inference.serve.toy import Toy, running, served, vector

MALFORMED = [b"{", b'{"model": "toy"}', b'{"model": "toy", "input": [""]}', b'{"model": "no", "input": "x"}']


def caller(server, number, wrong, requests=8):
    """Ask for texts of mixed lengths and check every vector; in between send nonsense and hang up early."""
    source = random.Random(number)
    try:
        for _ in range(requests):
            kind = source.random()
            if kind < 0.15:
                assert server.call("POST", "/v1/embeddings", raw=source.choice(MALFORMED))[0] in (400, 404)
            elif kind < 0.3:
                with socket.create_connection(("127.0.0.1", server.port)) as gone:
                    body = b'{"model": "toy", "input": ["text %d of nobody"]}' % source.randrange(50)
                    gone.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
                    gone.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            else:
                texts = [
                    f"text {source.randrange(200)} " + "word " * source.randrange(9)
                    for _ in range(source.choice([1, 1, 3, 20]))
                ]
                status, answer, _ = server.embed(texts)
                assert status == 200, answer
                rows = np.array([item["embedding"] for item in answer["data"]])
                np.testing.assert_allclose(rows, [vector(text) for text in texts], atol=1e-6)
    except BaseException as error:
        wrong.append(error)


@pytest.mark.parametrize("batch_tokens", [16, 400])
def test_answers_are_never_mixed_up(batch_tokens):
    toy, wrong = Toy(seconds=0.001), []
    with running(served(toy), limits=Limits(batch_tokens=batch_tokens)) as server:
        callers = [threading.Thread(target=caller, args=(server, number, wrong)) for number in range(20)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
        assert server.call("GET", "/health")[0] == 200
    assert not wrong, wrong[0]
    assert all(len(set(batch)) == len(batch) for batch in toy.batches)


def test_openais_own_client():
    openai = pytest.importorskip("openai")
    with running(served(shorten=True, token_ids=True), keys=("a key",)) as server:
        address = f"http://127.0.0.1:{server.port}/v1"
        with openai.OpenAI(base_url=address, api_key="a key", max_retries=0) as client:
            texts = ["a man is eating", "someone has a meal"]
            answer = client.embeddings.create(model="toy", input=texts)
            np.testing.assert_allclose([d.embedding for d in answer.data], [vector(t) for t in texts], atol=1e-6)
            assert answer.usage.total_tokens == 8
            floats = client.embeddings.create(model="toy", input=texts, encoding_format="float")
            assert [d.embedding for d in floats.data] == [list(d.embedding) for d in answer.data]
            ids = client.embeddings.create(model="toy", input=[[0, 1, 2, 3]], dimensions=4, user="someone")
            assert len(ids.data[0].embedding) == 4
            assert [model.id for model in client.models.list()] == ["toy"]
            assert client.models.retrieve("toy").id == "toy"
            with pytest.raises(openai.NotFoundError, match="one model, 'toy'"):
                client.embeddings.create(model="text-embedding-3-small", input="x")
            with pytest.raises(openai.BadRequestError) as refused:
                client.embeddings.create(model="toy", input="")
            assert (refused.value.param, refused.value.type) == ("input", "invalid_request_error")
        with (
            openai.OpenAI(base_url=address, api_key="another", max_retries=0) as client,
            pytest.raises(openai.AuthenticationError, match="wants a key"),
        ):
            client.models.list()
