"""The functions behind the commands, under the same names and with the same defaults; see :mod:`samesense`."""
