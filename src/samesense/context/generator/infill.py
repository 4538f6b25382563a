"""A pretrained sequence-to-sequence model of the T5 family as a generator, without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from samesense.context.generator.base import KINDS, Cells, Kind, LogProbs, batches_of, checked
from samesense.context.generator.pretrained import PretrainedGenerator
from samesense.context.generator.tokens import parts
from samesense.errors import ModelError

TokenIds = tuple[int, ...]


class InfillGenerator(PretrainedGenerator):
    """Scores what is missing as the model was pretrained to fill it in: a gap in what is read, its content written.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 3.1.4, for gaps; Sun et al. 2022
        (TACL), section 3.2.2, for what is asked for.
    Differs: the paper trains a model for each direction. The mark that ends the gap is no token of the text.

    What is read is encoded once for all texts that are scored after it.

    """

    form = "infill"

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 128) -> None:
        super().__init__(model, tokenizer, max_tokens=max_tokens)
        gap = tokenizer.convert_tokens_to_ids("<extra_id_0>")
        if gap is None or gap == tokenizer.unk_token_id:
            raise ModelError(
                "A sequence-to-sequence model fills in the gap <extra_id_0>, and this tokenizer does not know it. Take "
                "a model of the T5 family, or a causal language model."
            )
        self._gap = int(gap)
        self._begin = int(model.config.decoder_start_token_id)
        self._end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        self.protocol = f"sequence-to-sequence language model filling gaps, {str(model.dtype).removeprefix('torch.')}"

    @torch.inference_mode()
    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells; see the base class."""
        self._known = {}
        totals = np.empty((len(kinds), len(cells)))
        tokens = np.empty((len(kinds), len(cells)), dtype=np.int64)
        for at, kind in enumerate(kinds):
            sources: dict[TokenIds, list[int]] = {}
            targets: list[TokenIds] = []
            for cell, (row, column) in enumerate(zip(cells.rows, cells.columns, strict=True)):
                source, target = self._texts(kind, cells.sentences[row], cells.windows[column])
                sources.setdefault(source, []).append(cell)
                targets.append(target)
            tokens[at] = [len(target) for target in targets]
            distinct = list(sources)
            for batch in batches_of([len(source) for source in distinct], self._budget):
                read = [distinct[place] for place in batch]
                self._fill(read, [sources[source] for source in read], targets, totals[at])
        return checked(LogProbs(totals, tokens), cells, kinds)

    def _fill(self, read: list[TokenIds], groups: list[list[int]], targets: list[TokenIds], totals: np.ndarray) -> None:
        """Encode these sources, and write into ``totals`` those of the cells of each group."""
        ids, present = self._padded(read)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=present).last_hidden_state
        cells = [(source, cell) for source, group in enumerate(groups) for cell in group]
        for batch in batches_of([len(targets[cell]) for _, cell in cells], self._budget):
            members = [cells[place] for place in batch]
            chosen = torch.tensor([source for source, _ in members], device=ids.device)
            wanted, real = self._padded([targets[cell] for _, cell in members])
            begin = torch.tensor([[self._begin, self._gap]] * len(members), device=ids.device)
            logits = self.model(
                encoder_outputs=(states[chosen],),
                attention_mask=present[chosen],
                decoder_input_ids=torch.cat([begin, wanted[:, :-1]], dim=1),
            ).logits[:, 1:]
            logs = logits.gather(2, wanted[..., None])[..., 0].float() - logits.float().logsumexp(-1)
            summed = torch.where(real.bool(), logs, 0).double().sum(dim=1).cpu().numpy()
            totals[[cell for _, cell in members]] = summed

    def _texts(self, kind: Kind, sentence: str, window: Any) -> tuple[TokenIds, TokenIds]:
        """Return the tokens that are read, a gap in the place of what is missing, and those that are missing."""
        read, target = parts(kind, sentence, window)
        missing = {part.place for part in target}
        source: list[int] = []
        for part in sorted([*read, target[0]], key=lambda part: part.place):
            source += [self._gap] if part.place in missing else self._ids(part.text, inside=bool(source))
        written = [token for part in target for token in self._ids(part.text, inside=part is not target[0])]
        return (*source, *self._end), tuple(written)
