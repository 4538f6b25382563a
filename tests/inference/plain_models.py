"""Small random models of every kind that NumPy reads, and of kinds that it leaves to torch."""

import json

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Dropout,
    LayerNorm,
    Normalize,
    Pooling,
    StaticEmbedding,
    WeightedLayerPooling,
)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    DistilBertConfig,
    DistilBertModel,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizer,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

WORDS = "the a man dog cat eats runs meal bone in park is ##s ##ing quick brown zug fährt ab um mittag . , ?".split()
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ANGLES = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]

TEXTS = [
    "The man eats a meal.",
    "a dog runs in the park",
    "Der Zug fährt um Mittag ab?",
    "  cats,   dogs\tand 中文 – ünïcode 🚆 ",
    "x",
    "the quick brown dog " * 30,
    "[MASK] [SEP] <mask>",
    "an <unk>known word",
]


def words(marks):
    return {token: number for number, token in enumerate(dict.fromkeys([*marks, *WORDS, *LETTERS]))}


def small(kind, **settings):
    """A configuration of a small trunk."""
    torch.manual_seed(0)
    if kind is DistilBertConfig:
        sizes = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64}
    else:
        sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
    return kind(**sizes, max_position_embeddings=66, initializer_range=0.3, **settings)


def angled(marks=ANGLES):
    """A tokenizer of a general class with the marks of RoBERTa."""
    vocabulary = words(marks)
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = dict(zip(["cls_token", "pad_token", "sep_token", "unk_token", "mask_token"], marks, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)


def bert(folder, *, tokenizer=None, **settings):
    """A bare BERT in a folder."""
    vocabulary = words(MARKS)
    BertModel(small(BertConfig, vocab_size=len(vocabulary), **settings)).save_pretrained(folder)
    (tokenizer or BertTokenizer(vocab=vocabulary, model_max_length=64)).save_pretrained(folder)
    return folder


def distilbert(folder):
    vocabulary = words(MARKS)
    DistilBertModel(small(DistilBertConfig, vocab_size=len(vocabulary))).save_pretrained(folder)
    BertTokenizer(vocab=vocabulary, model_max_length=48).save_pretrained(folder)
    return folder


def mpnet(folder):
    vocabulary = words(ANGLES)
    MPNetModel(small(MPNetConfig, vocab_size=len(vocabulary))).save_pretrained(folder)
    MPNetTokenizer(vocab=vocabulary, model_max_length=64).save_pretrained(folder)
    return folder


def published_mpnet(folder):
    """Like all-mpnet-base-v2: its tokenizer has one more token than its class, and its settings list none."""
    vocabulary = words([*ANGLES[:3], "<unk>", *ANGLES[3:]])
    MPNetModel(small(MPNetConfig, vocab_size=len(vocabulary))).save_pretrained(folder)
    MPNetTokenizer(vocab=vocabulary, model_max_length=64).save_pretrained(folder)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": True}
    content["added_tokens"].insert(3, {"id": 3, "content": "<unk>", **flags})
    file.write_text(json.dumps(content), encoding="utf-8")
    settings_file = folder / "tokenizer_config.json"
    settings = json.loads(settings_file.read_text(encoding="utf-8"))
    settings.pop("added_tokens_decoder", None)
    settings_file.write_text(json.dumps(settings), encoding="utf-8")
    return folder


def roberta(folder):
    RobertaModel(small(RobertaConfig, vocab_size=len(words(ANGLES)), type_vocab_size=1)).save_pretrained(folder)
    angled().save_pretrained(folder)
    return folder


def xlm_roberta(folder):
    config = small(XLMRobertaConfig, vocab_size=len(words(ANGLES)), type_vocab_size=1)
    XLMRobertaModel(config).half().save_pretrained(folder)
    angled().save_pretrained(folder)
    return folder


TRUNKS = {
    "bert": bert,
    "cased": lambda folder: bert(
        folder, tokenizer=BertTokenizer(vocab=words(MARKS), do_lower_case=False, model_max_length=64)
    ),
    "relu": lambda folder: bert(folder, hidden_act="relu"),
    "distilbert": distilbert,
    "mpnet": mpnet,
    "mpnet as published": published_mpnet,
    "roberta": roberta,
    "xlm-roberta in half precision": xlm_roberta,
}
"""Bare transformers, each written into a folder."""


def weighing(trunk, weights):
    trunk.model.config.output_hidden_states = True
    layers = torch.nn.Parameter(torch.tensor(weights))
    return WeightedLayerPooling(32, num_hidden_layers=3, layer_start=4 - len(weights), layer_weights=layers)


def dense(width, out, activation, **options):
    torch.manual_seed(1)
    return Dense(width, out, activation_function=activation, **options)


MODULES = {
    "cls": lambda trunk: [Pooling(32, "cls")],
    "max": lambda trunk: [Pooling(32, "max")],
    "lasttoken": lambda trunk: [Pooling(32, "lasttoken")],
    "square root": lambda trunk: [Pooling(32, "mean_sqrt_len_tokens")],
    "weighted": lambda trunk: [Pooling(32, "weightedmean")],
    "joined": lambda trunk: [Pooling(32, ("mean", "cls", "max")), dense(96, 8, torch.nn.Tanh())],
    "unit": lambda trunk: [Pooling(32, "mean"), Normalize()],
    "whitened": lambda trunk: [Pooling(32, "mean"), dense(32, 12, torch.nn.Identity()), Normalize()],
    "dense": lambda trunk: [Pooling(32, "mean"), dense(32, 8, torch.nn.GELU(), bias=False)],
    "normed": lambda trunk: [Pooling(32, "mean"), Dropout(0.2), LayerNorm(32), dense(32, 8, torch.nn.ReLU())],
    "first-last": lambda trunk: [weighing(trunk, [1.0, 0.0, 1.0]), Pooling(32, "mean")],
    "first-last with embeddings": lambda trunk: [weighing(trunk, [1.0, 0.0, 0.0, 1.0]), Pooling(32, "mean")],
    "last-2": lambda trunk: [weighing(trunk, [1.0, 1.0]), Pooling(32, "mean")],
    "layers": lambda trunk: [weighing(trunk, [0.3, 0.7, 0.1]), Pooling(32, "cls")],
}
"""Modules that may follow a trunk of 32 numbers."""


def model(bare, name, **settings):
    """A sentence-transformers model of a bare folder and the modules of a name."""
    trunk = Transformer(str(bare))
    return SentenceTransformer(modules=[trunk, *MODULES[name](trunk)], device="cpu", **settings)


def static(folder):
    torch.manual_seed(2)
    vocabulary = words(MARKS)
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rows = torch.randn(len(vocabulary), 6).numpy()
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=rows)], device="cpu").save(str(folder))
    return folder
