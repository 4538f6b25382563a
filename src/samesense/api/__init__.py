"""The functions behind the commands, with the same names and defaults; see :mod:`samesense`.

They import what they need when they are called: ``import samesense`` stays fast, and does not load torch.
"""
