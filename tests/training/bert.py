"""A BERT small enough to be checked to the last digits, with the pooler that no embedding uses."""

import torch
from transformers import BertConfig, BertModel

DIM = 8


class Encoder(torch.nn.Module):
    """Means the token vectors of one layer, in double precision and without dropout."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=80,
            hidden_size=DIM,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=12,
            max_position_embeddings=16,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.bert = BertModel(config).double()

    def forward(self, features):
        mask = features["attention_mask"].unsqueeze(-1)
        tokens = self.bert(features["input_ids"], features["attention_mask"]).last_hidden_state
        return {"token_embeddings": tokens, "sentence_embedding": (tokens * mask).sum(1) / mask.sum(1)}

    def __getitem__(self, index):
        return self

    def get_embedding_dimension(self):
        return DIM


def gradient(model):
    """Return all gradients concatenated, zero where there is none."""
    return torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in model.parameters()])


def take_gradient(model):
    """Return all gradients concatenated, and remove them."""
    taken = gradient(model)
    model.zero_grad()
    return taken
