"""Small fixtures of the tests of contexts: windows, a corpus, random models."""

import random

import numpy as np

from samesense.context.corpus.corpus import Window
from samesense.context.generator.base import KINDS
from tests.conftest import WORDS


def some_sentences(count, *, seed=0, least=2, most=9):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(least, most))).capitalize() + "." for _ in range(count)]


def some_windows(count, *, seed=1, left=2, right=2):
    texts = some_sentences(count * (left + right + 1), seed=seed)
    groups = [texts[index : index + left + right + 1] for index in range(0, len(texts), left + right + 1)]
    return [
        Window(tuple(window_texts[:left]), window_texts[left], tuple(window_texts[left + 1 :]), id=index)
        for index, window_texts in enumerate(groups)
    ]


def some_documents(count, *, seed=2, length=12):
    """Documents of one section each; the sentences of a document draw half of their words from ten of its own."""
    draw = random.Random(seed)
    documents = []
    for _ in range(count):
        topic = draw.sample(WORDS, 10)
        sentences = [
            " ".join(draw.choice(topic if draw.random() < 0.5 else WORDS) for _ in range(draw.randint(3, 9))) + "."
            for _ in range(length)
        ]
        documents.append([sentences])
    return documents


def small_tokenizer(size=300):
    from samesense.context.generator.tokens import train_tokenizer

    return train_tokenizer(some_sentences(200, seed=3), size)


def small_generator(reading="apart", *, separate=False, seed=0, kinds=KINDS):
    """A random model of two layers, or one for each direction, with weights so large that much varies."""
    import torch

    from samesense.context.generator.seq2seq import Seq2SeqGenerator
    from samesense.context.generator.transformer import Architecture, Seq2Seq

    tokenizer = small_tokenizer()
    shape = Architecture(
        vocabulary=tokenizer.get_vocab_size(), width=16, heads=2, layers=2, feedforward=32, max_tokens=12
    )
    torch.manual_seed(seed)
    models = [Seq2Seq(shape) for _ in range(3 if separate else 1)]
    for model in models:
        for value in model.parameters():
            torch.nn.init.normal_(value, std=0.5)
    return Seq2SeqGenerator(dict(zip(kinds, models * (1 if separate else 3), strict=True)), tokenizer, reading)


class WordCounts:
    """Stub of a discriminator: a sentence fits by the hashed words that it shares with its context."""

    def __init__(self, windows, *, name="word counts", dim=32):
        self.windows = {window.id: window for window in windows}
        self.encoder, self.name, self.dim = self, name, dim
        self.asked = 0

    def identity(self):
        return self.name

    most_words = 64

    def beyond(self, sentences):
        return [text for text in sentences if len(text.split()) > self.most_words]

    def encode(self, sentences):
        vectors = np.zeros((len(sentences), self.dim), dtype=np.float32)
        for row, text in enumerate(sentences):
            for word in text.lower().strip(".").split():
                vectors[row, sum(map(ord, word)) % self.dim] += 1
        return vectors

    def scores(self, vectors, windows):
        self.asked += 1
        around = self.encode([" ".join(self.windows[i].left + self.windows[i].right) for i in map(int, windows)])
        logits = 0.3 * (vectors.astype(float) @ around.T.astype(float)) - 2  # integers, so equal values stay equal
        return -np.logaddexp(0.0, -logits)


def tokenizer_of(extra=()):
    """A tokenizer of transformers that knows bytes, an end mark and what is extra."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = ["<pad>", "</s>", *extra, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", additional_special_tokens=list(extra)
    )


def livened(model):
    import torch

    torch.manual_seed(0)
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.2)
    return model


def small_causal(folder, *, tokenizer=None, layers=2):
    """A random causal language model in a folder, with a tokenizer of bytes or another one."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tokenizer or tokenizer_of()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    livened(LlamaForCausalLM(config)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def small_worded_causal(folder, *, layers=3):
    """The same with a tokenizer that knows whole words, and parts of some."""
    return small_causal(folder, tokenizer=word_tokenizer(), layers=layers)


def word_tokenizer():
    """A tokenizer of transformers that knows the words of the small world, with a space before them and without."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<pad>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=marks, initial_alphabet=alphabet, show_progress=False, min_frequency=1
    )
    words = [*WORDS, *(word.capitalize() for word in WORDS)]
    tokenizer.train_from_iterator([*words, *some_sentences(200, seed=3)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")


def log_probability(generator, kind, sentences, windows):
    """Return the log probability a token and the number of tokens, both (sentences, windows)."""
    from samesense.context.generator.base import Cells

    measured = generator.measure(Cells.grid(sentences, windows), (kind,))
    shape = (len(sentences), len(windows))
    return measured.per_token[0].reshape(shape), measured.tokens[0].reshape(shape)
