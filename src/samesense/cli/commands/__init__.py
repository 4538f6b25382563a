"""One module per command: what only a terminal has of it, the call of the library, and what is printed.

They import what they use when they run, so that ``--help`` and completion stay quick.
"""
