"""What an exported folder says of its graphs."""

import hashlib

from samesense.inference.onnx.format import graph_file


def test_weights_beside_a_graph_count(tmp_path):
    graph = tmp_path / "model.onnx"
    graph.write_bytes(b"graph")
    (tmp_path / "model_int8.onnx").write_bytes(b"another")
    alone = graph_file(graph)
    assert (alone.bytes, alone.sha256) == (5, hashlib.sha256(b"graph").hexdigest())
    weights = tmp_path / "model.onnx.data"
    weights.write_bytes(b"weights" * 400_000)
    first = graph_file(graph)
    weights.write_bytes(b"Weights" * 400_000)
    second = graph_file(graph)
    assert first.bytes == second.bytes == 5 + 7 * 400_000
    assert len({alone.sha256, first.sha256, second.sha256}) == 3
