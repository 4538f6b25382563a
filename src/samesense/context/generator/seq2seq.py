"""Inference of the generator that is trained from scratch: encoder states are shared, targets scored in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from samesense.context.generator.base import (
    KINDS,
    Cells,
    Generator,
    Kind,
    LogProbs,
    Reading,
    batches_of,
    checked,
    groups_of,
)
from samesense.context.generator.tokens import (
    PAD,
    Layout,
    Tokens,
    encode_packs,
    gather,
    on_device,
    shifted,
    source_of,
    split_window,
)
from samesense.context.generator.transformer import Architecture, Seq2Seq
from samesense.errors import ModelError
from samesense.execution.onednn import fast_linear
from samesense.failures import opening
from samesense.files import write_json
from samesense.hashes import content_hash
from samesense.places import check_inside
from samesense.schemas import Record, read_checked
from samesense.types import Indices

CELLS = {"apart": 16384, "together": 1024}
"""Cells for which encoder states are held at once."""

WORTH_SHARING = 8
"""Number of sentences in one context from which on they share its memory in one forward."""

CPU_TOKENS = 2048
"""Target tokens of one forward on a CPU, padding included."""

CPU_ROWS = 256
"""Tokens whose logits over the vocabulary are held at once on a CPU; 2048 took 1.7 to 2.8 times as long."""

ACCELERATOR_TOKENS = 65536
"""The same on an accelerator; not measured."""


class Seq2SeqGenerator(Generator):
    """Scores with one model for all directions, or one for each.

    Source: Sun et al. 2022 (TACL), sections 3.2.2 and 4.1.
    Differs: with ``reading="apart"`` the encoder reads each sentence by itself and the decoder attends to all of them,
        so that the states of a sentence are computed once for all cells that read it; ``"together"`` is the paper's.
        The end mark of each generated sentence counts as a token, in the probability and in the length. p(right | s)
        is not in the paper; a model must be trained for it.
    """

    def __init__(
        self,
        models: Mapping[Kind, Seq2Seq],
        tokenizer: Tokenizer,
        reading: Reading = "apart",
        *,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        self.models = {kind: models[kind].eval() for kind in get_args(Kind) if kind in models}
        self.tokenizer = tokenizer
        self.tokens = Tokens(tokenizer, models["sentence"].shape.max_tokens)
        self.longest = self.tokens.max_tokens - 1  # the last is the end mark
        self.reading: Reading = reading
        self.precision = precision
        self.identity = json.dumps(["seq2seq", reading, precision, content_hash(_content(self))])
        # One model may serve several kinds.
        number = len({id(model) for model in self.models.values()})
        shape = models["sentence"].shape
        self.protocol = (
            f"{number} sequence-to-sequence model{'s' * (number > 1)} of {shape.layers}+{shape.layers} layers x "
            f"{shape.width}, sentences read {reading}, {precision}"
        )

    def beyond(self, sentences: Sequence[str]) -> list[str]:
        """Return the sentences that are longer than the model reads."""
        return self.tokens.beyond(sentences)

    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells; see the base class."""
        self._check_trained(kinds)
        totals = np.empty((len(kinds), len(cells)))
        tokens = np.empty((len(kinds), len(cells)), dtype=np.int64)
        # Cells of one context follow each other, so that a block reads each source once.
        order = np.argsort(cells.columns, kind="stable")
        for start in range(0, len(order), CELLS[self.reading]):
            members = order[start : start + CELLS[self.reading]]
            block = cells.take(members)
            self.tokens.learn(_texts(block))
            for index, kind in enumerate(kinds):
                totals[index, members], tokens[index, members] = self._kind(kind, block)
        return checked(LogProbs(totals, tokens), cells, kinds)

    def _check_trained(self, kinds: Sequence[Kind]) -> None:
        untrained = next((kind for kind in kinds if kind not in self.models), None)
        if untrained is not None:
            raise ModelError(
                f"This generator was trained for {', '.join(self.models)}; it was asked for the {untrained}. What the "
                "right side is given (right_given) is decided when an Origin is made: make it again."
            )

    def _kind(self, kind: Kind, cells: Cells) -> tuple[np.ndarray, Indices]:
        """Return totals and tokens of the cells of one block, ``(n,)`` each."""
        pairs = zip(cells.rows, cells.columns, strict=True)
        both = [split_window(kind, cells.sentences[row], cells.windows[column]) for row, column in pairs]
        sources = [source_of(read, self.reading) for read, _ in both]
        targets = [target for _, target in both]
        lengths = np.array([self.tokens.length(target) for target in targets], dtype=np.int64)
        model = self.models[kind]
        device = next(model.parameters()).device
        budget = CPU_TOKENS if device.type == "cpu" else ACCELERATOR_TOKENS
        totals = np.empty(len(cells))
        arithmetic = torch.autocast(device.type, torch.bfloat16, self.precision == "bfloat16")
        # Not measured: oneDNN could be chosen in one worker and not in another, whose bits would differ.
        with torch.inference_mode(), arithmetic, fast_linear(device, measured=False):
            layout = Layout(self.tokens, sources, budget)
            states = encode_packs(model, [on_device(pack, device) for pack in layout.packs])
            for members, shared in _plan(kind, cells.columns, lengths, budget):
                # Cells that share a memory are all in one context, so that the first stands for all.
                read_members = members[:1] if shared else members
                read = layout.state_indices([sources[cell] for cell in read_members])
                memory, absent = gather(states, torch.from_numpy(read).to(device))
                target = self.tokens.pack([targets[cell] for cell in members])
                costs, real = token_costs(
                    model, on_device(shifted(target), device), on_device(target, device)[0], memory, absent
                )
                summed = torch.zeros(real.shape, device=device)
                summed[real] = costs
                totals[members] = -summed.sum(dim=1).cpu().numpy()
        return totals, lengths

    def save(self, folder: Path) -> None:
        """Write the models, each once, the tokenizer and last ``generator.json``, which marks the folder complete."""
        folder.mkdir(parents=True, exist_ok=True)
        files: dict[int, str] = {}
        for kind, model in self.models.items():
            if id(model) not in files:
                files[id(model)] = f"{kind}.safetensors"
                save_file(
                    {name: value.contiguous() for name, value in model.state_dict().items()}, folder / files[id(model)]
                )
        self.tokenizer.save(str(folder / "tokenizer.json"))
        models = {kind: [files[id(model)], asdict(model.shape)] for kind, model in self.models.items()}
        write_json(folder / "generator.json", {"form": "seq2seq", "reading": self.reading, "models": models})


class GeneratorRecord(Record):
    """Content of ``generator.json``: a weights file and its architecture for each kind."""

    reading: Literal["apart", "together"]
    models: dict[Kind, tuple[str, dict[str, Any]]]


def open_seq2seq(
    folder: Path, *, precision: Literal["float32", "bfloat16"] = "float32", device: str = "cpu"
) -> Seq2SeqGenerator:
    """Load a generator that :meth:`Seq2SeqGenerator.save` wrote."""
    content = read_checked(folder / "generator.json", GeneratorRecord)
    loaded: dict[str, Seq2Seq] = {}
    check_inside(folder, *(file for file, _ in content.models.values()))
    for file, shape in content.models.values():
        # Several kinds may name one file.
        if file not in loaded:
            model = Seq2Seq(Architecture(**shape))
            with opening(str(folder / file), "Train the generator again."):
                model.load_state_dict(load_file(folder / file))
            loaded[file] = model.to(device)
    models: dict[Kind, Seq2Seq] = {kind: loaded[file] for kind, (file, _) in content.models.items()}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return Seq2SeqGenerator(models, tokenizer, content.reading, precision=precision)


def token_costs(
    model: Seq2Seq, inputs: Sequence[Tensor], targets: Tensor, memory: Tensor, absent: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of each target token, in nats, and the mask of these tokens in the targets.

    Padding is left out, end marks are included; the costs are float32 ``(tokens,)``.
    """
    real = targets != PAD
    states = model.decode(inputs[0], inputs[1], inputs[2], memory, absent)
    chosen = states[real]
    ids = targets[real]
    rows = CPU_ROWS if targets.device.type == "cpu" else len(ids)
    costs = [
        nn.functional.cross_entropy(
            model.logits(chosen[start : start + rows]).float(), ids[start : start + rows], reduction="none"
        )
        for start in range(0, len(ids), rows)
    ]
    return torch.cat(costs), real


def _plan(kind: Kind, columns: Indices, lengths: Indices, budget: int) -> list[tuple[Indices, bool]]:
    """Return the cells of each forward, and whether they share one memory, as sentences in one context can."""
    plan: list[tuple[Indices, bool]] = []
    alone = [np.arange(len(columns))]
    if kind == "sentence":
        groups = groups_of(columns)
        alone = [members for members in groups if len(members) < WORTH_SHARING]
        for members in groups:
            if len(members) >= WORTH_SHARING:
                plan += [(members[batch], True) for batch in batches_of(lengths[members], budget)]
    remaining = np.concatenate(alone) if alone else np.empty(0, dtype=np.int64)
    plan += [(remaining[batch], False) for batch in batches_of(lengths[remaining], budget)]
    return plan


def _texts(cells: Cells) -> list[str]:
    texts = [cells.sentences[row] for row in np.unique(cells.rows)]
    for column in np.unique(cells.columns):
        texts += [*cells.windows[column].left, *cells.windows[column].right]
    return texts


def _content(generator: Seq2SeqGenerator) -> Iterator[bytes | memoryview]:
    yield generator.tokenizer.to_str().encode()
    for kind, model in generator.models.items():
        yield f"{kind} {model.shape}".encode()
        for name, value in sorted(model.state_dict().items()):
            yield name.encode()
            yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
