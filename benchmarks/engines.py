"""Every way of encoding that ``backends.py`` compares, each in a process of its own, at its best settings.

A process is started as ``engines.py NAME FOLDER THREADS``. It opens the engine, answers requests of one JSON line each,
and ends with its input. ``FOLDER`` is what ``backends.py`` prepares: ``exported`` and ``texts.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Encode = Callable[[list[str]], np.ndarray]

BATCH_SIZES = (8, 32, 128)
"""Batch sizes that are tried for each length of texts; the fastest is used."""

GRAPHS = {
    "onnx": "onnx/model.onnx",
    "onnx-int8": "onnx/model_quantized.onnx",
    "openvino-int8": "openvino/openvino_model_qint8_quantized.xml",
}


@dataclass(frozen=True)
class Context:
    """What an engine is opened with."""

    folder: Path  # the exported folder, which holds the weights of torch too
    threads: int
    model: str  # the model that was exported

    @property
    def scratch(self) -> Path:
        return self.folder.parent

    @property
    def settings(self) -> dict[str, Any]:
        """The description of the exported folder."""
        return json.loads((self.folder / "samesense_onnx.json").read_text(encoding="utf-8"))


@dataclass
class Engine:
    """An opened engine; ``batch`` is the batch size, for engines that have one."""

    encode: Callable[[list[str], int], np.ndarray]
    packages: tuple[str, ...]
    sizes: tuple[int, ...] = BATCH_SIZES
    batch: int = 32

    def tune(self, texts: list[str]) -> None:
        """Keep the fastest batch size for texts of this length."""
        seconds = {}
        for size in self.sizes:
            self.encode(texts, size)
            started = time.perf_counter()
            self.encode(texts, size)
            seconds[size] = time.perf_counter() - started
        self.batch = min(seconds, key=lambda size: seconds[size])


def samesense_engine(backend: str, precision: str = "auto") -> Callable[[Context], Engine]:
    """Return what opens the exported folder by one of our backends; it chooses its batches by itself."""

    def open_engine(context: Context) -> Engine:
        import samesense

        model = samesense.load(
            str(context.folder), backend=backend, precision=precision, device="cpu", threads=context.threads
        )
        return Engine(lambda texts, _: model.encode(texts), ("samesense",), sizes=(0,))

    return open_engine


def samesense_bfloat16(context: Context) -> Engine:
    import torch

    from samesense.encoder.forward.precision import has_bfloat16

    if not has_bfloat16(torch.device("cpu")):
        raise RuntimeError("the processor has no bfloat16")
    return samesense_engine("torch", "bfloat16")(context)


def sentence_transformers(backend: str, **options: Any) -> Callable[[Context], Engine]:
    """Return what opens the folder by a backend of sentence-transformers; ``onnx`` and ``openvino`` need optimum."""

    def open_engine(context: Context) -> Engine:
        from sentence_transformers import SentenceTransformer

        arguments = dict(options)
        if backend == "onnx":
            import onnxruntime

            # Left to itself, onnxruntime binds a thread to each core, beyond those that the process may use.
            arguments["session_options"] = onnxruntime.SessionOptions()
            arguments["session_options"].intra_op_num_threads = context.threads
        model = SentenceTransformer(str(context.folder), backend=backend, device="cpu", model_kwargs=arguments)

        def encode(texts: list[str], size: int) -> np.ndarray:
            return model.encode(texts, batch_size=size, show_progress_bar=False)

        return Engine(encode, ("sentence-transformers", "torch", "transformers", *_OPTIMUM[backend]))

    return open_engine


_OPTIMUM = {"torch": (), "onnx": ("optimum-onnx", "onnxruntime"), "openvino": ("optimum-intel", "openvino")}


def plain_onnxruntime(graph: str) -> Callable[[Context], Engine]:
    """Return what runs a graph by onnxruntime: sorted by length, padded to the longest of the batch."""

    def open_engine(context: Context) -> Engine:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = context.threads
        session = onnxruntime.InferenceSession(
            context.folder / GRAPHS[graph], options, providers=["CPUExecutionProvider"]
        )
        names = [entry.name for entry in session.get_inputs()]
        tokenizer = padding_tokenizer(context)

        def encode(texts: list[str], size: int) -> np.ndarray:
            def run(batch: list[str]) -> np.ndarray:
                return session.run(["sentence_embedding"], arrays(tokenizer.encode_batch(batch), names))[0]

            return by_length(texts, size, run)

        return Engine(encode, ("onnxruntime", "tokenizers"))

    return open_engine


def plain_openvino(graph: str, precision: str = "f32") -> Callable[[Context], Engine]:
    """Return what runs a graph by OpenVINO: sorted by length, batches in parallel, a stream a thread."""

    def open_engine(context: Context) -> Engine:
        import openvino

        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise RuntimeError("the processor has no bfloat16")
        # By itself it takes bfloat16 where the processor has it, also for a graph in float32.
        settings = {
            "INFERENCE_NUM_THREADS": context.threads,
            "PERFORMANCE_HINT": "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": precision,
        }
        compiled = core.compile_model(core.read_model(context.folder / GRAPHS[graph]), "CPU", settings)
        names = [entry.any_name for entry in compiled.inputs]
        tokenizer = padding_tokenizer(context)

        def encode(texts: list[str], size: int) -> np.ndarray:
            queue = openvino.AsyncInferQueue(compiled, context.threads)
            rows = {}

            def keep(request: Any, start: int) -> None:
                rows[start] = request.get_tensor("sentence_embedding").data.copy()

            queue.set_callback(keep)
            order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
            for start in range(0, len(texts), size):
                batch = [texts[index] for index in order[start : start + size]]
                queue.start_async(arrays(tokenizer.encode_batch(batch), names), start)
            queue.wait_all()
            out = np.concatenate([rows[start] for start in sorted(rows)])
            return out[np.argsort(order)]

        return Engine(encode, ("openvino", "tokenizers"))

    return open_engine


def ctranslate2(compute_type: str) -> Callable[[Context], Engine]:
    """Return what runs CTranslate2 with weights converted from the transformer; pooling by NumPy."""

    def open_engine(context: Context) -> Engine:
        import ctranslate2 as library

        converted = context.scratch / f"ctranslate2-{compute_type}"
        if not converted.exists():
            converter = library.converters.TransformersConverter(str(context.folder))
            converter.convert(str(converted), quantization=compute_type)
        encoder = library.Encoder(
            str(converted), device="cpu", compute_type=compute_type, intra_threads=context.threads, inter_threads=1
        )
        tokenizer = padding_tokenizer(context)
        tokenizer.no_padding()
        pool = pooling(context)

        def encode(texts: list[str], size: int) -> np.ndarray:
            def run(batch: list[str]) -> np.ndarray:
                ids = [encoding.ids for encoding in tokenizer.encode_batch(batch)]
                states = np.array(encoder.forward_batch(ids).last_hidden_state)
                return pool(states, np.array([len(row) for row in ids]))

            return by_length(texts, size, run)

        return Engine(encode, ("ctranslate2", "transformers", "tokenizers"))

    return open_engine


def fastembed(graph: str) -> Callable[[Context], Engine]:
    """Return what runs fastembed on our graph, which pools by itself."""

    def open_engine(context: Context) -> Engine:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        name = f"local/{graph}"
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.DISABLED,
            normalization=False,
            sources=ModelSource(hf=name),
            dim=context.settings["dim"],
            model_file=GRAPHS[graph],
        )
        model = TextEmbedding(name, specific_model_path=str(context.folder), threads=context.threads)

        def encode(texts: list[str], size: int) -> np.ndarray:
            return np.array(list(model.embed(texts, batch_size=size)))

        return Engine(encode, ("fastembed", "onnxruntime"))

    return open_engine


def model2vec(context: Context) -> Engine:
    """Open static vectors distilled from the model: another quality, at another speed."""
    from model2vec import StaticModel
    from model2vec.distill import distill

    static = context.scratch / "model2vec"
    if not static.exists():
        distill(model_name=str(context.folder), device="cpu").save_pretrained(str(static))
    model = StaticModel.from_pretrained(str(static))
    return Engine(lambda texts, _: model.encode(texts, use_multiprocessing=False), ("model2vec",), sizes=(0,))


def llama_cpp(weights: str) -> Callable[[Context], Engine]:
    """Return what runs llama.cpp's server inside the process, on a GGUF file of the same model.

    The variable ``GGUF`` names a folder with ``f32.gguf``, ``bf16.gguf`` and ``q8_0.gguf``, which llama.cpp's
    ``convert_hf_to_gguf.py`` writes.
    """

    def open_engine(context: Context) -> Engine:
        import xllamacpp

        if "GGUF" not in os.environ:
            raise RuntimeError("name the folder with the model's GGUF files by the variable GGUF")
        params = xllamacpp.CommonParams()
        params.model.path = str(Path(os.environ["GGUF"]) / f"{weights}.gguf")
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = context.threads
        params.n_parallel = 16  # texts of a batch
        params.n_batch = params.n_ubatch = 16 * 512  # tokens of a batch
        params.n_ctx = 16 * 512
        params.verbosity = 0
        server = xllamacpp.Server(params)

        def encode(texts: list[str], _: int) -> np.ndarray:
            reply = server.handle_embeddings({"input": texts})
            return np.array([entry["embedding"] for entry in reply["data"]])

        return Engine(encode, ("xllamacpp",), sizes=(0,))

    return open_engine


SYSTEMS: dict[str, Callable[[Context], Engine]] = {
    "sentence-transformers torch": sentence_transformers("torch"),
    "sentence-transformers onnx": sentence_transformers("onnx", file_name=GRAPHS["onnx"]),
    "sentence-transformers openvino": sentence_transformers("openvino"),
    "samesense torch": samesense_engine("torch", "float32"),
    "samesense torch bfloat16": samesense_bfloat16,
    "samesense onnx": samesense_engine("onnx"),
    "samesense openvino": samesense_engine("openvino"),
    "samesense openvino-bfloat16": samesense_engine("openvino-bfloat16"),
    "samesense onnx-int8": samesense_engine("onnx-int8"),
    "samesense openvino-int8": samesense_engine("openvino-int8"),
    "onnxruntime": plain_onnxruntime("onnx"),
    "onnxruntime int8": plain_onnxruntime("onnx-int8"),
    "openvino": plain_openvino("onnx"),
    "openvino bfloat16": plain_openvino("onnx", "bf16"),
    "openvino int8": plain_openvino("openvino-int8"),
    "ctranslate2": ctranslate2("float32"),
    "ctranslate2 int8": ctranslate2("int8"),
    "fastembed": fastembed("onnx"),
    "fastembed int8": fastembed("onnx-int8"),
    "model2vec": model2vec,
    "llama.cpp": llama_cpp("f32"),
    "llama.cpp bfloat16": llama_cpp("bf16"),
    "llama.cpp int8": llama_cpp("q8_0"),
}


def padding_tokenizer(context: Context) -> Any:
    from tokenizers import Tokenizer

    settings = context.settings
    tokenizer = Tokenizer.from_file(str(context.folder / "tokenizer.json"))
    tokenizer.enable_truncation(settings["max_tokens"])
    tokenizer.enable_padding(pad_id=settings["pad_token"], direction=settings["padding_side"])
    return tokenizer


def arrays(encodings: Sequence[Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    fields = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {
        name: np.array([getattr(encoding, fields[name]) for encoding in encodings], dtype=np.int64) for name in names
    }


def by_length(texts: list[str], size: int, run: Encode) -> np.ndarray:
    """Return the rows of texts in their order, computed in batches of similar length."""
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    rows = [run([texts[index] for index in order[start : start + size]]) for start in range(0, len(texts), size)]
    return np.concatenate(rows)[np.argsort(order)]


def pooling(context: Context) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the pooling of the model, by its description: states ``(batch, tokens, width)`` to rows."""
    name = context.settings["pooling"]
    if name == "cls":
        return lambda states, _: states[:, 0]
    if name != "mean":
        raise RuntimeError(f"CTranslate2 is compared for mean and cls pooling; this model has {name}")

    def mean(states: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        mask = np.arange(states.shape[1])[None, :] < lengths[:, None]
        return (states * mask[:, :, None]).sum(axis=1) / lengths[:, None]

    return mean


def spearman_of(encode: Encode, pairs: dict[str, list]) -> float:
    """Return Spearman x100 of the cosines of labelled pairs."""
    from scipy.stats import spearmanr

    rows = encode([*pairs["left"], *pairs["right"]])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    half = len(pairs["left"])
    return 100 * float(spearmanr((rows[:half] * rows[half:]).sum(axis=1), pairs["labels"]).statistic)


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def answer(engine: Engine, request: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request: tune, time, or score the pairs."""
    if request["do"] == "spearman":
        return {"spearman": spearman_of(lambda texts: engine.encode(texts, engine.batch), content["pairs"])}
    texts = content["texts"][request["length"]][: request["texts"]]
    if request["do"] == "tune":
        engine.tune(texts)
        return {"batch": engine.batch}
    started = time.perf_counter()
    if request["batch"] == "one":
        for text in texts:
            engine.encode([text], 1)
    else:
        engine.encode(texts, engine.batch)
    return {"seconds": time.perf_counter() - started}


def main() -> None:
    name, folder, threads, model = sys.argv[1:]
    # Libraries print; the answers have the real standard output to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    content = json.loads((Path(folder) / "texts.json").read_text(encoding="utf-8"))
    try:
        engine = SYSTEMS[name](Context(Path(folder) / "exported", int(threads), model))
        engine.encode(content["pairs"]["left"][:4], 4)
    except Exception as error:
        # Whatever keeps a peer from running is its line in the table.
        send({"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"})
        return
    send({"versions": versions_of(engine.packages)})
    for line in sys.stdin:
        send(answer(engine, json.loads(line), content))


if __name__ == "__main__":
    main()
