"""The functions behind the commands, with the same names and defaults; see :mod:`samesense`."""
