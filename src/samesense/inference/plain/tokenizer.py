"""Read the tokenizer of a folder, if transformers would use its ``tokenizer.json`` unchanged.

transformers 5 uses the file unchanged for a general tokenizer class, but builds the tokenizers of BERT and similar
models from the vocabulary in the file and the settings beside it. A file that differs from what the class would build
is left to transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from samesense.inference.plain.weights import NotPlainError

FILE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"

GENERAL = ("TokenizersBackend", "PreTrainedTokenizer")

_MARKS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_BERT_MARKS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_ROBERTA_MARKS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": "<mask>",
}
_USUAL_MARKS = {
    "BertTokenizer": _BERT_MARKS,
    "DistilBertTokenizer": _BERT_MARKS,
    "MPNetTokenizer": {**_ROBERTA_MARKS, "unk_token": "[UNK]"},
    "RobertaTokenizer": _ROBERTA_MARKS,
    "XLMRobertaTokenizer": _ROBERTA_MARKS,
}
"""Default special tokens of the supported classes."""

_WORD_PIECE = ("BertTokenizer", "DistilBertTokenizer", "MPNetTokenizer")

_KNOWN = {
    *_MARKS,
    *("tokenizer_class", "backend", "is_local", "local_files_only", "model_max_length", "name_or_path"),
    *("do_lower_case", "tokenize_chinese_chars", "strip_accents", "do_basic_tokenize", "never_split"),
    *("add_prefix_space", "trim_offsets", "errors", "clean_up_tokenization_spaces", "special_tokens_map_file"),
    *("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "processor_class"),
    *("padding_side", "truncation_side", "max_length", "padding", "truncation", "truncation_strategy", "stride"),
    *("pad_to_multiple_of", "pad_token_type_id", "tokenizer_file", "model_input_names", "return_token_type_ids"),
}
"""Supported settings; a file with others is left to transformers."""


def read_tokenizer(folder: Path) -> tuple[Tokenizer, dict[str, Any]]:
    """Return the tokenizer of a transformer and its settings; NotPlainError if transformers may build another one."""
    settings = read_settings(folder / SETTINGS)
    if unknown := settings.keys() - _KNOWN:
        raise NotPlainError(f"{SETTINGS} has {min(unknown)}")
    if settings.get("truncation_side", "right") != "right":
        raise NotPlainError("it cuts off the beginning of a text")
    if any((folder / name).exists() for name in ("chat_template.jinja", "chat_template.json", "processor_config.json")):
        raise NotPlainError("it has a template or a processor")
    text = _read(folder / FILE)
    content = json.loads(text)
    kind = str(settings.get("tokenizer_class")).removesuffix("Fast")
    _check_marks(content, _marks(settings, kind), folder)
    if kind not in GENERAL:
        _check_built(content, settings, kind)
    elif content.get("post_processor") is None:
        raise NotPlainError("its tokenizer adds no special tokens")
    return Tokenizer.from_str(text), settings


def read_bare_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of static vectors, which is the file alone."""
    return Tokenizer.from_str(_read(folder / FILE))


def read_settings(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; NotPlainError if there is none."""
    if not path.is_file():
        raise NotPlainError(f"{path.name} is absent")
    settings = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise NotPlainError(f"{path.name} is no object")
    return settings


def _read(path: Path) -> str:
    if not path.is_file():
        raise NotPlainError(f"{path.name} is absent")
    return path.read_text(encoding="utf-8")


def _marks(settings: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the special tokens by role: those in the settings, or the defaults of the class."""
    defaults = {} if kind in GENERAL else _USUAL_MARKS.get(kind)
    if defaults is None:
        raise NotPlainError(f"its tokenizer is of the class {kind}")
    overrides = {role: settings[role] for role in _MARKS if settings.get(role) is not None}
    return {**defaults, **overrides}


def _check_marks(content: dict[str, Any], marks: dict[str, Any], folder: Path) -> None:
    """Raise NotPlainError unless the file has all special tokens of the settings, with the same flags."""
    settings = read_settings(folder / SETTINGS)
    added = {entry["content"]: entry for entry in content.get("added_tokens", [])}
    special_tokens = [*marks.values(), *(settings.get("additional_special_tokens") or [])]
    extra = settings.get("extra_special_tokens") or []
    if isinstance(extra, dict):  # by their roles
        extra = extra.values()
    special_tokens += extra
    # Older versions of transformers wrote the special tokens into a file of their own.
    legacy = folder / "special_tokens_map.json"
    if legacy.is_file():
        for value in read_settings(legacy).values():
            if isinstance(value, list):
                special_tokens += value
            else:
                special_tokens.append(value)
    for mark in special_tokens:
        _check_mark(mark, added)
    for number, entry in (settings.get("added_tokens_decoder") or {}).items():
        if added.get(entry.get("content"), {}).get("id") != int(number):
            raise NotPlainError("its settings have other tokens than its tokenizer")
        _check_mark(entry, added, special=entry.get("special", False))
    if (folder / "added_tokens.json").is_file():
        raise NotPlainError("it has added_tokens.json")


def _check_mark(mark: Any, added: dict[str, dict[str, Any]], *, special: bool = True) -> None:
    flags = mark if isinstance(mark, dict) else {"content": mark}
    name = flags.get("content")
    entry = added.get(str(name))
    if entry is None or entry["special"] != special:
        raise NotPlainError(f"its tokenizer has no token {name}")
    for flag in ("single_word", "lstrip", "rstrip", "normalized"):
        if flags.get(flag, entry[flag]) != entry[flag]:
            raise NotPlainError(f"its settings have the token {name} otherwise")


def _check_built(content: dict[str, Any], settings: dict[str, Any], kind: str) -> None:
    """Raise NotPlainError unless the file is what the class would build from vocabulary and settings."""
    marks = {role: mark["content"] if isinstance(mark, dict) else mark for role, mark in _marks(settings, kind).items()}
    contents = {*marks.values(), *_other_contents(content, settings)}
    for entry in content.get("added_tokens", []):
        lstrip = kind in ("MPNetTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer") and entry["lstrip"]
        if entry["content"] not in contents or not entry["special"]:
            raise NotPlainError("its tokenizer has tokens that its settings have not")
        if lstrip and entry["content"] != marks["mask_token"]:
            raise NotPlainError("its tokenizer has marks that take the space before them")
    actual = {
        "normalizer": content.get("normalizer"),
        "pre_tokenizer": content.get("pre_tokenizer"),
        "model": {key: value for key, value in content["model"].items() if key not in ("vocab", "merges")},
    }
    if kind not in _WORD_PIECE:
        raise NotPlainError(f"its tokenizer is of the class {kind}")
    if actual != _word_piece(settings, marks):
        raise NotPlainError("its tokenizer is not what its class builds")
    _check_ends(content, marks, vocabulary=content["model"]["vocab"])


def _other_contents(content: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """Return the tokens that the class adds besides its special ones: those of the settings, else those of the file."""
    decoder = settings.get("added_tokens_decoder")
    if decoder is not None:
        return [entry["content"] for entry in decoder.values()]
    # transformers takes them from the file, and numbers those that the vocabulary lacks itself.
    vocabulary = content["model"]["vocab"]
    added = content.get("added_tokens", [])
    return [entry["content"] for entry in added if vocabulary.get(entry["content"]) == entry["id"]]


def _word_piece(settings: dict[str, Any], marks: dict[str, str]) -> dict[str, Any]:
    """Return the parts of ``tokenizer.json`` that a WordPiece class builds."""
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": marks["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
    }


def _check_ends(content: dict[str, Any], marks: dict[str, str], *, vocabulary: dict[str, int]) -> None:
    """Raise NotPlainError unless the tokenizer puts each text between the CLS and the SEP token."""
    first = marks["cls_token"]
    last = marks["sep_token"]
    processor = content.get("post_processor") or {}
    if processor.get("type") == "TemplateProcessing":
        expected: list[dict[str, Any]] = [
            {"SpecialToken": {"id": first, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": last, "type_id": 0}},
        ]
        ids = {name: entry["ids"] for name, entry in processor["special_tokens"].items()}
        fits = processor["single"] == expected
        fits = fits and ids == {first: [vocabulary.get(first)], last: [vocabulary.get(last)]}
    else:
        ends = processor.get("cls"), processor.get("sep")
        fits = processor.get("type") in ("BertProcessing", "RobertaProcessing")
        fits = fits and ends == ([first, vocabulary.get(first)], [last, vocabulary.get(last)])
    if not fits:
        raise NotPlainError("its tokenizer adds other special tokens than its class")
