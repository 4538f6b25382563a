"""Export a model as an ONNX graph that outputs the sentence vector: pooling, layers and normalisation included."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Dropout,
    LayerNorm,
    Pooling,
    StaticEmbedding,
    WeightedLayerPooling,
)
from torch import Tensor, nn

from samesense.encoder.forward.batching import tokenize_texts
from samesense.errors import MissingExtraError, ModelError
from samesense.failures import first_line, imported
from samesense.inference.onnx.format import TOKEN_OUTPUT, VECTOR_OUTPUT
from samesense.inference.onnx.graph_encoder import INPUTS
from samesense.inference.onnx.openvino_encoder import openvino_core

EXAMPLE = ("Two short example sentences.", "The second of them is a little longer than the first.")
"""Example input for tracing; batch size and length are dynamic."""

RECORDED = (Pooling, WeightedLayerPooling, Dense, Normalize, LayerNorm, Dropout)
"""Modules that may follow the first: they treat each text by itself, and ONNX has their operations."""

LARGE = 1_500_000_000
"""Bytes of weights from which they are stored in a file beside the graph, as ONNX files are limited to 2 GB."""


def check_modules(model: SentenceTransformer) -> None:
    """Raise ModelError if a module of ``model`` cannot be part of a graph."""
    first, *later_modules = list(model)
    if not isinstance(first, Transformer | StaticEmbedding):
        raise ModelError(
            f"An export begins with a transformer or with static words; this model begins with {type(first).__name__}. "
            "Keep to torch for this model."
        )
    for module in later_modules:
        if not isinstance(module, RECORDED):
            raise ModelError(
                f"An export cannot hold a module of the kind {type(module).__name__}, but only "
                f"{', '.join(kind.__name__ for kind in RECORDED)}. Keep to torch for this model."
            )


def graph_inputs(model: SentenceTransformer) -> list[str]:
    """Return the names of the tensors that a model takes; ModelError if one is not in :data:`INPUTS`."""
    names = [name for name, value in _features(model).items() if isinstance(value, Tensor)]
    if unknown := sorted(set(names) - set(INPUTS)):
        raise ModelError(f"A graph takes {', '.join(INPUTS)}; this model also asks for {', '.join(unknown)}.")
    return names


def write_graph(model: SentenceTransformer, path: Path) -> None:
    """Write the graph of ``model``, whose inputs are each ``(batch, tokens)`` of int64.

    Its first output, ``sentence_embedding``, is ``(batch, dim)`` of float32. A transformer has a second output for
    libraries that do the pooling themselves: ``last_hidden_state``, ``(batch, tokens, width)``.
    """
    features = _features(model)
    inputs = {name: features[name] for name in graph_inputs(model)}
    graph = _Graph(model, list(inputs), {k: v for k, v in features.items() if k not in inputs}).eval()
    dynamic = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    outputs = [VECTOR_OUTPUT, TOKEN_OUTPUT] if graph.tokens else [VECTOR_OUTPUT]
    with _quiet("torch.onnx"), _plain_attention(model), _plain_prompt(model), torch.no_grad():
        try:
            program = torch.onnx.export(
                graph,
                tuple(inputs.values()),
                dynamo=True,
                input_names=list(inputs),
                output_names=outputs,
                dynamic_shapes={"inputs": tuple(dynamic for _ in inputs)},
                verbose=False,
            )
        except Exception as error:  # torch passes on the errors of the model's own code
            raise ModelError(f"torch cannot record this model as a graph: {first_line(error)}") from error
    if program is None:
        raise ModelError("torch gave no graph for this model.")
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = sum(value.numel() * value.element_size() for value in model.state_dict().values())
    program.save(str(path), external_data=weights > LARGE)


def write_int8(graph: Path, path: Path) -> None:
    """Write the graph with dynamic int8 quantization: a scale a channel for weights, dynamic scales for activations.

    What follows the transformer, such as the map of a whitened model, stays in float32. Weights use only seven bits
    (``reduce_range``): without VNNI, a processor with AVX2 adds pairs of products in sixteen bits, which overflow with
    eight.

    Source: Krishnamoorthi 2018, "Quantizing deep convolutional networks for efficient inference", for per-channel
    scales.
    """
    MissingExtraError.check("export", "onnx")
    # Of an extra: onnx is needed for an export alone.
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # onnxruntime advises pre-processing, which the exporter has done
    try:
        large = graph.with_name(f"{graph.name}.data").exists()
        model = onnx.load(graph)
        # Quantization transposes weights, so that their recorded shapes would be wrong; it infers them again.
        model.graph.ClearField("value_info")
        quantize_dynamic(
            model,
            path,
            weight_type=QuantType.QInt8,
            per_channel=True,
            nodes_to_exclude=_nodes_behind_tokens(model),
            use_external_data_format=large,
            reduce_range=True,
        )
    finally:
        root.setLevel(level)


def write_openvino_int8(graph: Path, path: Path, batches: Sequence[Mapping[str, Any]]) -> None:
    """Write the graph for OpenVINO with static int8 quantization: fixed scales for weights and for activations.

    ``batches`` are inputs of the graph, on which the ranges of the activations are measured. SmoothQuant moves large
    channels of the activations into the weights before. What follows the transformer is not quantized: the map of a
    whitened model enlarges small differences, and in eight bits its vectors were off by 23 % of their length. Weights
    use only seven bits, for the reason of :func:`write_int8`. What is not quantized is stored in float16.

    Source: Xiao et al. 2023, "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language
    Models", by NNCF, whose default strength for transformers is 0.95.
    """
    with _quiet("nncf"):
        nncf = imported("nncf", "openvino-export")
        openvino = imported("openvino", "openvino-export")
        logging.getLogger("nncf").setLevel(logging.ERROR)  # NNCF sets its own level while it is imported
        advanced = nncf.AdvancedQuantizationParameters(overflow_fix=nncf.OverflowFix.ENABLE)
        try:
            model = openvino_core().read_model(graph)
            quantized = nncf.quantize(
                model,
                nncf.Dataset([dict(batch) for batch in batches]),
                model_type=nncf.ModelType.TRANSFORMER,
                ignored_scope=nncf.IgnoredScope(names=_operations_behind_tokens(model), validate=False),
                subset_size=len(batches),
                advanced_parameters=advanced,
            )
        except Exception as error:  # nncf and openvino raise many classes, without a common base
            raise ModelError(f"NNCF cannot quantize this model: {first_line(error)}. Leave out OpenVINO.") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        openvino.save_model(quantized, path)


def _nodes_behind_tokens(model: Any) -> list[str]:
    """Return the nodes of an ONNX model that its token states do not depend on; none if it does not output them."""
    if TOKEN_OUTPUT not in {output.name for output in model.graph.output}:
        return []
    producers = {name: node for node in model.graph.node for name in node.output}
    pending = [TOKEN_OUTPUT]
    before_tokens = set()
    while pending:
        node = producers.get(pending.pop())
        if node is not None and node.name not in before_tokens:
            before_tokens.add(node.name)
            pending.extend(node.input)
    return [node.name for node in model.graph.node if node.name not in before_tokens]


def _operations_behind_tokens(model: Any) -> list[str]:
    """Return the operations of an OpenVINO model that its token states do not depend on; none if it has none."""
    pending = [output.get_node() for output in model.outputs if TOKEN_OUTPUT in output.get_names()]
    if not pending:
        return []
    before_tokens = set()
    while pending:
        operation = pending.pop()
        if operation.get_friendly_name() not in before_tokens:
            before_tokens.add(operation.get_friendly_name())
            pending.extend(value.get_node() for value in operation.input_values())
    names = (operation.get_friendly_name() for operation in model.get_ordered_ops())
    return [name for name in names if name not in before_tokens]


class _Graph(nn.Module):
    """The modules of a model in sequence, with tensors as inputs and outputs, which the exporter needs."""

    def __init__(self, model: SentenceTransformer, names: list[str], constants: dict[str, Any]) -> None:
        super().__init__()
        first, *later_modules = list(model)
        self.steps = nn.ModuleList(
            # sentence-transformers feeds a static model one bag of ids, which has no axis for the batch.
            [_StaticMean(first) if isinstance(first, StaticEmbedding) else first, *later_modules]
        )
        self.names = names
        self.constants = constants
        self.dim = model.get_embedding_dimension()
        self.tokens = isinstance(first, Transformer)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        features = dict(self.constants) | dict(zip(self.names, inputs, strict=True))
        first, *later_steps = self.steps
        features = first(features)
        states = features["token_embeddings"] if self.tokens else None
        for step in later_steps:
            features = step(features)
        embedding: Tensor = features[VECTOR_OUTPUT][:, : self.dim].float()
        if states is None:
            return embedding
        return (embedding, states.float())


class _StaticMean(nn.Module):
    """A static embedding for padded rows: the mean of the vectors of real tokens, zeros if there are none."""

    def __init__(self, static: StaticEmbedding) -> None:
        super().__init__()
        self.weight = static.embedding.weight

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        mask = features["attention_mask"].unsqueeze(-1).to(self.weight.dtype)
        vectors = nn.functional.embedding(features["input_ids"], self.weight)
        features["sentence_embedding"] = (vectors * mask).sum(1) / mask.sum(1).clamp(min=1)
        return features


def _features(model: SentenceTransformer) -> dict[str, Any]:
    """Return the inputs of the model's first module, such as padded rows of tokens."""
    if isinstance(model[0], StaticEmbedding):
        # Sizes above 1, as torch would take a size of 0 or 1 for a constant.
        ids = torch.ones((2, 8), dtype=torch.int64)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return dict(tokenize_texts(model, EXAMPLE))


@contextlib.contextmanager
def _plain_attention(model: SentenceTransformer) -> Iterator[None]:
    """Use the eager implementation of attention: that of torch adds guards, which slow down the graph."""
    trunk: Any = getattr(model[0], "model", None)
    before = getattr(getattr(trunk, "config", None), "_attn_implementation", None)
    if before is None or not hasattr(trunk, "set_attn_implementation"):
        yield
        return
    trunk.set_attn_implementation("eager")
    try:
        yield
    finally:
        trunk.set_attn_implementation(before)


def _without_prompt(attention_mask: Tensor, prompt_length: int) -> Tensor:
    """Return the mask of the tokens after the prompt, for padding on either side.

    sentence-transformers branches on the side of the padding, which a graph cannot.
    """
    # The first 1 of the mask is the first token, on whichever side the padding is.
    begin = attention_mask.to(torch.int32).argmax(dim=1) + prompt_length
    positions = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    return attention_mask * (positions.unsqueeze(0) >= begin.unsqueeze(1)).to(attention_mask.dtype)


@contextlib.contextmanager
def _plain_prompt(model: SentenceTransformer) -> Iterator[None]:
    """Have poolings exclude a prompt by :func:`_without_prompt`."""
    poolings: list[Any] = [module for module in model if isinstance(module, Pooling)]
    for pooling in poolings:
        pooling._exclude_prompt_from_mask = _without_prompt
    try:
        yield
    finally:
        for pooling in poolings:
            # Of the instance; the method of the class is seen again.
            del pooling._exclude_prompt_from_mask


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Suppress output, warnings and the logger of an exporter."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
