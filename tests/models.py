"""Models made of functions."""

from samesense.inference.models.functions import FunctionEncoder
from samesense.inference.models.model import Model


def made_model(score=None, encode=None, *, name="m", protocol="by rule", seed=None):
    """Return a model of one or both functions; it scores by ``score``, or by the cosine of ``encode``."""
    encoder = None if encode is None else FunctionEncoder(encode, protocol)
    return Model(encoder, score=score, name=name, protocol=protocol, seed=seed)
