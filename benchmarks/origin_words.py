"""Choose the parts of an Origin by next words on STS-B dev; the protocol is in reproduce/context/words.md.

python benchmarks/origin_words.py read --model smollm2 --data data/en --folder readings --prompts meaning echo
python benchmarks/origin_words.py prompts --data data/en --folder readings      # which prompt, on dev
python benchmarks/origin_words.py settings --data data/en --folder readings --prompts meaning    # layers and so on

Readings are cached in blocks, so a stopped run resumes.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

SEED = 5
BLOCK = 100
"""Sentences that are read, and kept, at a time."""

LONGEST = 128
"""Tokens of a sentence that are read."""

STATE_LAYERS = (12, 16, 20, 24, 26, 28, 29, 30)
"""Layers whose state at the end of a prompt is kept; the last one is normalised, as the output layer sees it."""

OWN_LAYERS = (0, 1, 2, 4, 6)
"""Layers whose mean over the sentence's tokens is kept, from a reading without a prompt."""

PROMPTS = {
    "meaning": 'This sentence : "{text}" means in one word:"',
    "topic": 'The topic of this sentence : "{text}" is in one word:"',
    "event": 'What happens in this sentence : "{text}" is in one word:"',
    "echo": 'This sentence : "{text}" says again : "{text}" which means in one word:"',
    "before": 'Before this sentence : "{text}" the text was about one thing, in one word:"',
}
"""Prompts by name. The first is that of PromptEOL (Jiang et al. 2023, arXiv 2307.16645)."""

CHAT = "What does this sentence mean, in one word? {text}"
"""What the user asks, for the prompt ``chat`` in the form of the model's own chat template."""

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Readings:
    """Hidden states and log probabilities of some sentences in one prompt."""

    states: Array  # (sentences, layers, width)
    logs: Array  # log p of each word of the vocabulary, (sentences, words)


def evaluated_pairs(data: Path, count: int | None) -> tuple[list[tuple[str, str]], Array]:
    """Return pairs of STS-B dev, at random, with their labels."""
    from samesense.data import read_pairs

    dev = read_pairs(str(data / "stsb.dev.tsv.gz"))
    chosen = np.random.default_rng(SEED).permutation(len(dev))[:count]
    pairs = list(dev.pairs())
    return [pairs[row] for row in chosen], np.asarray(dev.labels, dtype=np.float32)[chosen]


def reference_sentences(data: Path, count: int) -> list[str]:
    """Return sentences of STS-B train that stand in no pair of dev or test."""
    from samesense.data import read_pairs

    train, dev, test = (read_pairs(str(data / f"stsb.{split}.tsv.gz")) for split in ("train", "dev", "test"))
    evaluated = {*dev.sentences1, *dev.sentences2, *test.sentences1, *test.sentences2}
    texts = [text for text in dict.fromkeys([*train.sentences1, *train.sentences2]) if text not in evaluated]
    return [texts[row] for row in np.random.default_rng(SEED).permutation(len(texts))[:count]]


def all_sentences(arguments: argparse.Namespace) -> list[str]:
    """Return the distinct sentences of the evaluated pairs, then those of the reference."""
    pairs, _ = evaluated_pairs(arguments.data, arguments.pairs)
    evaluated = dict.fromkeys(text for pair in pairs for text in pair)
    return [*evaluated, *reference_sentences(arguments.data, arguments.reference)]


def prompt_ids(tokenizer, name: str, text: str) -> list[int]:
    """Return the tokens of a text in a prompt; the text alone, with a full stop, for ``own``."""
    from samesense.context.origin.reader import closed

    shortened = tokenizer.decode(tokenizer(text)["input_ids"][:LONGEST])
    start = [tokenizer.bos_token_id]
    if name == "own":
        return start + tokenizer(closed(shortened))["input_ids"]
    if name == "chat":
        message = [{"role": "user", "content": CHAT.format(text=shortened)}]
        chat = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        return tokenizer(chat + '"')["input_ids"]
    return start + tokenizer(PROMPTS[name].format(text=shortened))["input_ids"]


def word_ids(tokenizer) -> list[int]:
    """Return the tokens that are whole words, or begin one: letters alone, two or more, in ASCII."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return [number for number, token in enumerate(tokens) if len(token) > 1 and token.isascii() and token.isalpha()]


def read(arguments: argparse.Namespace) -> None:
    """Read all sentences behind each prompt, block by block."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=getattr(torch, arguments.precision)).eval()
    words = torch.tensor(word_ids(tokenizer))
    texts = sorted(all_sentences(arguments), key=lambda text: len(tokenizer(text)["input_ids"]))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.prompts:
        for start in range(0, len(texts), BLOCK):
            path = arguments.folder / f"{name}-{start // BLOCK:03d}.npz"
            if path.exists():
                continue
            began = time.perf_counter()
            block = texts[start : start + BLOCK]
            rows = [prompt_ids(tokenizer, name, text) for text in block]
            arrays = read_own(model, rows) if name == "own" else read_behind(model, rows, words)
            unfinished = path.with_suffix(".unfinished.npz")
            np.savez(unfinished, texts=block, **arrays)
            unfinished.rename(path)
            print(f"{path.name}: {1000 * (time.perf_counter() - began) / len(block):.0f} ms a sentence", flush=True)


def read_behind(model, rows: list[list[int]], words) -> dict[str, npt.NDArray[np.float16]]:
    """Return the states at the last token of each row, and the log probabilities of the words that may follow."""
    import torch

    states = np.empty((len(rows), len(STATE_LAYERS), model.config.hidden_size), dtype=np.float16)
    logs = np.empty((len(rows), len(words)), dtype=np.float16)
    output_layer = model.get_output_embeddings().weight.float()
    for members in rows_of_one_length(rows):
        ids = torch.tensor([rows[member] for member in members])
        with torch.inference_mode():
            hidden = model.model(input_ids=ids, output_hidden_states=True).hidden_states
            last = torch.stack([hidden[layer][:, -1].float() for layer in STATE_LAYERS], dim=1)
            logits = last[:, -1] @ output_layer.T
            states[members] = last.numpy()
            logs[members] = logits.log_softmax(-1)[:, words].numpy()
    return {"states": states, "logs": logs}


def read_own(model, rows: list[list[int]]) -> dict[str, npt.NDArray[np.float16]]:
    """Return the mean state of each row's tokens but the first, at each layer."""
    import torch

    states = np.empty((len(rows), len(OWN_LAYERS), model.config.hidden_size), dtype=np.float16)
    for members in rows_of_one_length(rows):
        ids = torch.tensor([rows[member] for member in members])
        with torch.inference_mode():
            hidden = model.model(input_ids=ids, output_hidden_states=True).hidden_states
            states[members] = torch.stack([hidden[index][:, 1:].float().mean(1) for index in OWN_LAYERS], dim=1).numpy()
    return {"states": states, "logs": np.empty((len(rows), 0), dtype=np.float16)}


def rows_of_one_length(rows: list[list[int]]) -> list[list[int]]:
    """Return the numbers of rows that can be read together without padding."""
    groups: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(len(row), []).append(number)
    return list(groups.values())


def readings_of(folder: Path, name: str, texts: list[str]) -> Readings:
    """Return the readings of these texts in a prompt."""
    states: dict[str, npt.NDArray[np.float16]] = {}
    logs: dict[str, npt.NDArray[np.float16]] = {}
    for path in sorted(folder.glob(f"{name}-???.npz")):
        with np.load(path) as arrays:
            block = arrays["texts"].tolist()
            states |= dict(zip(block, arrays["states"], strict=True))
            logs |= dict(zip(block, arrays["logs"], strict=True))
    every = (np.stack([rows[text] for text in texts]).astype(np.float32) for rows in (states, logs))
    return Readings(*every)


class Dev:
    """The pairs of dev, and what turns readings into scores."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.pairs, self.labels = evaluated_pairs(arguments.data, arguments.pairs)
        self.texts = list(dict.fromkeys(text for pair in self.pairs for text in pair))
        self.reference = reference_sentences(arguments.data, arguments.reference)
        self.folder = arguments.folder
        rows = {text: row for row, text in enumerate(self.texts)}
        self.first, self.second = ([rows[pair[side]] for pair in self.pairs] for side in (0, 1))

    def readings(self, name: str) -> tuple[Readings, Readings]:
        """Return the readings of the evaluated sentences and of the reference."""
        return readings_of(self.folder, name, self.texts), readings_of(self.folder, name, self.reference)

    def cosines(self, vectors: Array) -> Array:
        """Return the cosine of each pair."""
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        cosines: Array = np.einsum("nd,nd->n", unit[self.first], unit[self.second])
        return cosines

    def whitened(self, states: Array, reference: Array) -> Array:
        """Return the cosines of whitened states (Ledoit-Wolf)."""
        from samesense.encoder.maps.whitening import Whitening

        return self.cosines(Whitening.shrunk(reference).apply(states).astype(np.float32))

    def ppmi(self, logs: Array, reference: Array, words: int | None = None) -> Array:
        """Return the cosines of positive pointwise mutual information, the ``words`` largest of each sentence kept.

        Source: Levy and Goldberg 2014, with p(word) the mean over the reference.
        """
        usual = np.logaddexp.reduce(reference.astype(np.float64), axis=0) - np.log(len(reference))
        values = np.maximum(logs - usual.astype(np.float32), 0)
        if words is not None and words < values.shape[1]:
            least = np.partition(values, -words, axis=1)[:, -words, None]
            values = np.where(values >= least, values, 0)
        return self.cosines(values)

    def figure(self, scores: Array) -> float:
        """Return Spearman x100."""
        from samesense.metrics import spearman

        return 100 * spearman(scores.astype(np.float64), self.labels.astype(np.float64))


def compare_prompts(arguments: argparse.Namespace) -> None:
    """Print each prompt's parts alone and joined with equal weights, and those of the mean of three prompts."""
    dev = Dev(arguments)
    own_texts, own_reference = dev.readings("own")
    own_layer_1 = dev.whitened(own_texts.states[:, OWN_LAYERS.index(1)], own_reference.states[:, OWN_LAYERS.index(1)])
    print(f"own, layer 1, whitened: {dev.figure(own_layer_1):.2f}")
    arrays: dict[str, tuple[Array, Array]] = {}
    for name in arguments.prompts:
        texts, reference = dev.readings(name)
        states = dev.whitened(texts.states[:, -1], reference.states[:, -1])
        arrays[name] = states, dev.ppmi(texts.logs, reference.logs)
    means = {
        "mean of meaning, topic, event": ("meaning", "topic", "event"),
        "meaning and before": ("meaning", "before"),
    }
    for name, members in means.items():
        if arrays.keys() >= set(members):
            each = [np.mean([arrays[member][side] for member in members], axis=0) for side in (0, 1)]
            arrays[name] = each[0], each[1]
    for name, (states, ppmi) in arrays.items():
        rows = {"state": states, "ppmi": ppmi, "own + ppmi": own_layer_1 + ppmi, "all": own_layer_1 + states + ppmi}
        print(f"{name}: " + ", ".join(f"{key} {dev.figure(scores):.2f}" for key, scores in rows.items()))


def compare_settings(arguments: argparse.Namespace) -> None:
    """Print layers, words kept, reference sizes and weights of the first prompt named."""
    dev = Dev(arguments)
    texts, reference = dev.readings(arguments.prompts[0])
    own_texts, own_reference = dev.readings("own")
    owns = {
        layer: dev.whitened(own_texts.states[:, index], own_reference.states[:, index])
        for index, layer in enumerate(OWN_LAYERS)
    }
    states = {
        layer: dev.whitened(texts.states[:, index], reference.states[:, index])
        for index, layer in enumerate(STATE_LAYERS)
    }
    for name, scores in (("own", owns), ("state", states)):
        print(f"{name}: " + ", ".join(f"layer {layer} {dev.figure(row):.2f}" for layer, row in scores.items()))
    for words in (100, 250, 500, 1000, 2000, 4000, None):
        print(f"{words or 'all'} words: {dev.figure(dev.ppmi(texts.logs, reference.logs, words)):.2f}")
    for count in (100, 250, 500, 1000, len(dev.reference)):
        row = dev.whitened(texts.states[:, -1], reference.states[:count, -1])
        words_row = dev.ppmi(texts.logs, reference.logs[:count])
        own_row = dev.whitened(own_texts.states[:, 1], own_reference.states[:count, 1])
        joined = dev.figure(own_row + row + words_row)
        figures = [dev.figure(scores) for scores in (own_row, row, words_row)]
        print(f"{count} reference sentences: own, state, ppmi {np.round(figures, 2)}, all {joined:.2f}")
    ppmi = dev.ppmi(texts.logs, reference.logs)
    grid = []
    for (own_layer, own_state), (layer, state) in product(owns.items(), states.items()):
        for state_weight, word_weight in product((0, 0.5, 1, 2), repeat=2):
            joined = own_state + state_weight * state + word_weight * ppmi
            grid.append((dev.figure(joined), own_layer, layer, state_weight, word_weight))
    for combination in sorted(grid, reverse=True)[:20]:
        print("all: {:.2f}, own layer {}, state layer {} x {}, ppmi x {}".format(*combination))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["read", "prompts", "settings"])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--prompts", nargs="+", default=[*PROMPTS, "chat"])
    parser.add_argument("--pairs", type=int, help="pairs of dev [all]")
    parser.add_argument("--reference", type=int, default=1500)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    arguments = parser.parse_args()
    {"read": read, "prompts": compare_prompts, "settings": compare_settings}[arguments.do](arguments)


if __name__ == "__main__":
    main()
