"""The choice of the fastest: by measuring, once for a model and a machine, and not for nothing."""

import numpy as np
import pytest

from samesense.encoder.distinct import encode_distinct, token_batches
from samesense.errors import ConfigError
from samesense.inference.models import backends
from samesense.inference.models.backends import choose, fastest, measure
from samesense.inference.onnx.format import Description


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMESENSE_CACHE", str(tmp_path / "cache"))


class Clock:
    """Time that only the encoders make pass."""

    def __init__(self, monkeypatch):
        self.now, self.asked = 0.0, []
        monkeypatch.setattr(backends.time, "perf_counter", lambda: self.now)

    def opener(self, way, seconds):
        def encode(texts):
            self.asked.append((way, len(texts)))
            self.now += seconds
            return np.zeros((len(texts), 1), dtype=np.float32)

        return lambda: encode


TEXTS = [f"text {number}" for number in range(backends.MEASURE_FROM)]


def test_the_fastest_is_measured_in_turns_and_remembered(monkeypatch, tmp_path):
    clock = Clock(monkeypatch)
    openers = {"onnx": clock.opener("onnx", 2.0), "torch-float32": clock.opener("torch-float32", 1.0)}
    folder = tmp_path / "model"
    folder.mkdir()
    first = choose(str(folder), openers, TEXTS)
    assert first.backend == "torch-float32" and "onnx 128, torch-float32 256" in first.reason
    assert [way for way, _ in clock.asked] == ["onnx", "torch-float32"] * 4
    again = choose(str(folder), openers, TEXTS[:3])
    assert (again.backend, again.reason) == ("torch-float32", "measured on this machine before")
    assert len(clock.asked) == 8


def test_another_model_machine_or_offer_is_measured_anew(monkeypatch, tmp_path):
    keys = {backends.choice_key(str(tmp_path), ["onnx", "torch-float32"])}
    keys.add(backends.choice_key(str(tmp_path), ["onnx"]))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    keys.add(backends.choice_key(str(tmp_path), ["onnx"]))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert backends.choice_key(f"~/{tmp_path.name}", ["onnx"]) in keys, "told by its files, however it is named"
    monkeypatch.setattr(backends, "_processor", lambda: "another")
    keys.add(backends.choice_key(str(tmp_path), ["onnx"]))
    assert len(keys) == 4


def test_few_texts_or_none_are_not_measured(monkeypatch, tmp_path):
    clock = Clock(monkeypatch)
    openers = {"onnx": clock.opener("onnx", 2.0), "torch-float32": clock.opener("torch-float32", 1.0)}
    repeated = ["the same"] * len(TEXTS)
    assert choose(str(tmp_path), openers, repeated).reason == "too few texts to measure: 1 of 5000"
    assert choose(str(tmp_path), openers, None).backend == "onnx"
    assert clock.asked == []


def test_a_damaged_memory_is_measured_again(tmp_path):
    backends.store_choice("key", "onnx", {"onnx": 1.0})
    assert backends.recall("key") == "onnx"
    (tmp_path / "cache" / "backends" / "key.json").write_text("half")
    assert backends.recall("key") is None


def test_an_inexact_way_must_be_worth_it():
    assert fastest({"onnx": 100.0, "onnx-int8": 109.0}) == "onnx"
    assert fastest({"onnx": 100.0, "onnx-int8": 111.0}) == "onnx-int8"
    assert fastest({"onnx": 100.0, "torch-float32": 101.0}) == "torch-float32"


def test_the_sample_is_spread_over_all_texts(monkeypatch):
    measured = []
    measure({"onnx": lambda texts: measured.append(list(texts))}, TEXTS)
    assert len(measured[0]) == backends.SAMPLE == len(set(measured[0]))
    assert measured[0][0] == TEXTS[0] and measured[0][128] == TEXTS[2500]
    measure({"onnx": lambda texts: measured.append(list(texts))}, TEXTS[:5])
    assert measured[-1] == TEXTS[:5]


def test_batches_hold_every_text_within_the_budget():
    lengths = [*np.random.default_rng(0).integers(0, 60, 500).tolist(), 5000]
    batches = list(token_batches(lengths, 256))
    assert sorted(index for batch in batches for index in batch) == list(range(501))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(1, max(lengths[index] for index in batch)) <= 256
    assert batches[0] == [500]


def test_rows_of_zeros_stay_when_scaled():
    rows = encode_distinct(
        ["a", "bb", "a"], lambda block: np.array([[3, 4]] * len(block), np.float32), 2, normalize=True
    )
    np.testing.assert_allclose(rows, [[0.6, 0.8]] * 3)
    assert not encode_distinct(["a"], lambda block: np.zeros((1, 2), np.float32), 2, normalize=True).any()


def described(points, pairs=1000, int8=True):
    graph = {"bytes": 1, "sha256": ""}
    return Description.model_validate(
        {
            "samesense": "",
            "dim": 1,
            "max_tokens": None,
            "prompt": "",
            "inputs": [],
            "pad_token": 0,
            "padding_side": "right",
            "special_tokens": True,
            "pooling": "mean",
            "modules": [],
            "graphs": {"onnx": graph, "onnx-int8": graph} if int8 else {"onnx": graph},
            "drift": None if points is None else {"data": "d", "pairs": pairs, "reference": 80.0, "points": points},
        }
    )


@pytest.mark.parametrize(
    ("points", "pairs", "offered"),
    [
        (None, 0, ["onnx", "torch-float32"]),
        ({"onnx-int8": 0.1, "torch-bfloat16": 0.11}, 1000, ["onnx", "torch-float32", "onnx-int8"]),
        ({"onnx-int8": -0.2, "torch-bfloat16": -0.1}, 1000, ["onnx", "torch-float32", "torch-bfloat16"]),
        ({"onnx-int8": 0.0, "torch-bfloat16": 0.0}, 499, ["onnx", "torch-float32"]),
    ],
)
def test_nothing_inexact_is_offered_without_proof(points, pairs, offered):
    ways = backends.exported_backends(described(points, pairs), "auto", "auto", torch_there=True, bfloat16_there=True)
    assert ways == offered


def test_openvino_is_offered_where_it_is_installed_within_the_same_bound():
    graph = {"bytes": 1, "sha256": ""}

    def ways(points, precision="auto", openvino_there=True):
        description = described({"onnx-int8": 1.0, "openvino-int8": points})
        graphs = {**description.graphs, "openvino-int8": graph}
        return backends.exported_backends(
            description.model_copy(update={"graphs": graphs}),
            "auto",
            precision,
            torch_there=False,
            bfloat16_there=False,
            openvino_there=openvino_there,
        )

    assert ways(0.1) == ["onnx", "openvino", "openvino-int8"]
    assert ways(-0.11) == ways(0.0, precision="float32") == ["onnx", "openvino"]
    assert ways(0.0, openvino_there=False) == ["onnx"]
    assert fastest({"onnx": 100.0, "openvino": 101.0}) == "openvino"


@pytest.mark.parametrize(("there", "points", "offered"), [(True, 0.1, True), (True, 0.11, False), (False, 0.0, False)])
def test_openvino_in_bfloat16_is_offered_where_the_processor_has_it(there, points, offered):
    offers = backends.exported_backends(
        described({"openvino-bfloat16": points}),
        "auto",
        "auto",
        torch_there=False,
        bfloat16_there=False,
        openvino_there=True,
        openvino_bfloat16_there=there,
    )
    assert ("openvino-bfloat16" in offers) == offered


def test_another_version_of_openvino_is_measured_again(monkeypatch, tmp_path):
    versions = {"openvino": "1"}
    monkeypatch.setattr(backends, "installed_versions", lambda packages: versions)
    before = backends.choice_key(str(tmp_path), ["onnx"])
    versions["openvino"] = "2"
    assert backends.choice_key(str(tmp_path), ["onnx"]) != before


def test_what_is_asked_for_is_what_is_offered():
    def ways(backend, precision="auto", torch_there=True, bfloat16_there=True):
        good = described({"onnx-int8": 0.0, "torch-bfloat16": 0.0})
        return backends.exported_backends(
            good, backend, precision, torch_there=torch_there, bfloat16_there=bfloat16_there
        )

    assert ways("onnx-int8") == ["onnx-int8"] and ways("onnx") == ["onnx"]
    assert ways("torch") == ["torch-bfloat16"] and ways("torch", bfloat16_there=False) == ["torch-float32"]
    assert ways("torch", "float32") == ["torch-float32"] and ways("auto", "bfloat16") == ["torch-bfloat16"]
    assert ways("auto", "float32") == ["onnx", "torch-float32"]
    assert ways("auto", torch_there=False) == ["onnx", "onnx-int8"]
    with pytest.raises(ConfigError, match="eight bits"):
        ways("onnx-int8", "float32")
