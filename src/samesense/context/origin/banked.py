"""Origin by a bank: two sentences are alike if a language model expects alike what may come after them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from samesense.context.corpus.corpus import Corpus, Shape
from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.bank import Bank
from samesense.context.origin.blocks import Block, CellsOf, joined, read_blocks
from samesense.context.origin.cache import CellCache, cell_keys, content_keys
from samesense.context.origin.explain import Contribution, Explanation
from samesense.context.origin.reader import Reader, Reading
from samesense.errors import DataError
from samesense.execution.progress import progress_bar
from samesense.hashes import content_hash
from samesense.types import Embeddings, Floats, Pair, Scores

BANK, WHITENING = "bank", "whitening.npz"
"""Names in the folder of an Origin."""

CELLS, OWN = "bank", "own"
"""Names of the blocks."""

BLOCK = 64
"""Sentences read, and written, at a time: what a killed run may lose."""


logger = logging.getLogger(__name__)


class BankOrigin:
    """A :data:`~samesense.types.Score`, and an :data:`~samesense.types.Encode`: a sentence is one vector.

    Every sentence is put into the same contexts, of which only the text after it counts: log p(R | s) of a pretrained
    language model. These numbers are whitened by sentences without labels, and so are the model's own hidden states.

    Source: Sun et al. 2022 (TACL), section 3.3, with one context set for all sentences and one term of Eq. 3; Su et
        al. 2021 for whitening. Liu et al. 2024 (ICLR), "Meaning representations from trajectories in autoregressive
        models", compare sentences by p(R | s) of sampled R.
    Differs: see docs/methods/origin.md.

    Args:
        corpus: where the bank is from.
        bank: the contexts.
        reader: the language model.
        blocks: how numbers become vectors.
        cells: what of a tail counts.
        folder: where everything that was computed is kept by content; ``None`` keeps it in memory.
        note: what the whitening was fitted on, in words.
    """

    def __init__(
        self,
        corpus: Corpus,
        bank: Bank,
        reader: Reader,
        blocks: Sequence[Block],
        *,
        cells: CellsOf,
        folder: Path | None = None,
        note: str = "",
    ) -> None:
        self.corpus, self.bank, self.reader, self.blocks = corpus, bank, reader, list(blocks)
        self._form, self._note = cells, note
        self._tails = content_keys([json.dumps(tail.tolist()) for tail in bank.tails])
        width = bank.tails.shape[1]
        self._cells = CellCache(folder, json.dumps([reader.identity, "cells", width]), width)
        self._own = CellCache(folder, json.dumps([reader.identity, "layer", reader.layer]), reader.width)

    @classmethod
    def open(cls, folder: Path, content: Mapping[str, Any], *, device: str = "cpu") -> BankOrigin:
        """Open a folder that the recipe has made; ``content`` is that of its ``origin.json``."""
        generator = open_language_model(content["language_model"], precision=content["precision"], device=device)
        reader, bank = Reader(generator, content["layer"]), Bank.read(folder / BANK)
        if reader.identity != content["reader"]:  # also with a release of transformers that names a setting otherwise
            logger.warning(
                f"{content['language_model']} is not the language model that {folder} was made with, or a library "
                "describes it otherwise now. If it was trained further, scores mean nothing: make the Origin anew."
            )
        if bank.tails.size and not 0 <= bank.tails.min() <= bank.tails.max() < reader.vocabulary:
            raise DataError(
                f"{folder / BANK} holds tokens that the language model does not have. Make the Origin anew."
            )
        return cls(
            Corpus(folder / "corpus", Shape(**content["shape"])),
            bank,
            reader,
            read_blocks(folder / WHITENING),
            cells=content["cells"],
            folder=folder / "cache",
            note=content["note"],
        )

    @property
    def protocol(self) -> str:
        """Everything that changes a score, in words."""
        windows, tokens = self.bank.tails.shape
        shares = ", ".join(f"{block.name} {block.weight:g}" for block in self.blocks)
        form = "the mean" if self._form == "means" else "each"
        return (
            f"Origin: cosine over a bank of {windows} contexts, log p of {form} of {tokens} tokens behind a sentence, "
            f"and hidden states of layer {self.reader.layer} ({shares}); whitened by {self._note}; causal language "
            f"model, {self.reader.precision}, at most {self.reader.longest} tokens of a text"
        )

    @property
    def identity(self) -> str:
        """A text that is the same only for what gives the same vectors."""
        how = [self.reader.identity, self.reader.layer, self._form, [block.weight for block in self.blocks]]
        arrays = [self.bank.tails, *(array for block in self.blocks for array in (block.mean, block.matrix))]
        return content_hash([json.dumps(how).encode(), *(array.tobytes() for array in arrays)])

    def fresh(self) -> BankOrigin:
        """Return the same with nothing kept, so that what is read together decides the last bits of a vector."""
        return BankOrigin(self.corpus, self.bank, self.reader, self.blocks, cells=self._form, note=self._note)

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Return unit vectors, float32 ``(texts, dim)``; a dot product is the similarity.

        Raises:
            DataError: if a text is blank, or has no token.
        """
        for row, text in enumerate(texts):
            if not text.strip():
                raise DataError(f"Origin compares texts; text {row} is blank: {text!r}. Leave it out.")
        distinct = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        self.reader.note_unread(list(distinct))
        vectors = joined(parts_of(self.read(list(distinct)), self._form), self.blocks)
        return vectors[[distinct[text] for text in texts]]

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return the similarity of each pair, ``(pairs,)``; raises as :meth:`encode`."""
        vectors = self.encode([text for pair in pairs for text in pair]).astype(np.float64)
        scores: Scores = np.clip(np.einsum("nd,nd->n", vectors[::2], vectors[1::2]), -1.0, 1.0)
        return scores

    def read(self, sentences: Sequence[str]) -> Reading:
        """Return what the language model says of distinct sentences, computing only what is not kept."""
        order = self.reader.order(sentences)
        logs = np.empty((len(order), *self.bank.tails.shape), dtype=np.float32)
        own = np.empty((len(order), self.reader.width), dtype=np.float32)
        with progress_bar("read", "sentence", len(order), leave=False, inner=True) as bar:
            for start in range(0, len(order), BLOCK):
                block = order[start : start + BLOCK]
                found = self._block([sentences[int(at)] for at in block])
                logs[block], own[block] = found.logs, found.own
                bar.update(len(block))
        return Reading(logs, own)

    def _block(self, sentences: Sequence[str]) -> Reading:
        texts, shape = content_keys(sentences), (len(sentences), len(self._tails))
        keys = cell_keys(np.repeat(texts, shape[1], axis=0), np.tile(self._tails, (shape[0], 1)))
        logs, known = self._cells.find(keys)
        own, own_known = self._own.find(texts)
        logs, known, keys = logs.reshape(*shape, -1), known.reshape(shape), keys.reshape(*shape, 2)
        rows = np.flatnonzero(~(known.all(axis=1) & own_known))
        if len(rows):
            columns = np.flatnonzero(~known[rows].all(axis=0))
            columns = columns if len(columns) else np.zeros(1, dtype=np.int64)
            fresh = self.reader.read([sentences[int(row)] for row in rows], self.bank.tails[columns])
            cross, new = np.ix_(rows, columns), ~known[np.ix_(rows, columns)]
            self._cells.write(keys[cross][new], fresh.logs[new])
            self._own.write(texts[rows[~own_known[rows]]], fresh.own[~own_known[rows]])
            logs[cross] = np.where(new[..., None], fresh.logs, logs[cross])
            own[rows] = np.where(own_known[rows, None], own[rows], fresh.own)
        return Reading(logs, own)

    def explain(self, first: str, second: str, *, top: int = 5) -> Explanation:
        """Return the similarity of two sentences with the contexts that made it."""
        pair = (first, second)
        score = float(self([pair])[0])
        reading = self.read(pair)
        block = next(block for block in self.blocks if block.name == CELLS)
        shares = window_shares(block, parts_of(reading, self._form)[CELLS], len(self.bank.windows))
        usual = block.mean.reshape(len(shares), -1).mean(axis=1)
        fits = reading.logs.astype(np.float64).mean(axis=2) - usual

        def entry(at: int) -> Contribution:
            window = self.corpus.window(int(self.bank.windows[at]))
            # what was not read says nothing
            read = replace(window, left=(), right=(self.reader.text(self.bank.tails[at]),))
            return Contribution.of(read, "both", float(fits[0, at]), float(fits[1, at]), float(shares[at]))

        order = np.argsort(-shares, kind="stable")
        return Explanation(
            sentences=pair, score=score, contexts=len(shares),
            rest=score - float(shares.sum()) if len(self.blocks) > 1 else None,
            alike=[entry(int(at)) for at in order[:top] if shares[at] > 0],
            apart=[entry(int(at)) for at in order[::-1][:top] if shares[at] < 0],
        )  # fmt: skip


def parts_of(reading: Reading, cells: CellsOf) -> dict[str, Embeddings]:
    """Return the numbers of each block, ``(sentences, numbers)``."""
    logs = reading.logs.mean(axis=2) if cells == "means" else reading.logs.reshape(len(reading.logs), -1)
    return {CELLS: logs, OWN: reading.own}


def window_shares(block: Block, numbers: Embeddings, windows: int) -> Floats:
    """Return what each window adds to the cosine of two sentences, ``(windows,)``.

    Whitening mixes windows: with P = W W' the cosine is x' P y up to lengths, and a window has half of its own x (P y)
    and half of its y (P x). ``numbers`` are those of both, ``(2, numbers)``; those of a window stand together.
    """
    first, second = block.centred(numbers)
    one, other = (block.matrix @ (block.matrix.T @ side) for side in (first, second))
    lengths = np.sqrt((first @ one) * (second @ other))
    each = block.weight * (first * other + second * one) / (2 * lengths)
    summed: Floats = each.reshape(windows, -1).sum(axis=1)
    return summed
