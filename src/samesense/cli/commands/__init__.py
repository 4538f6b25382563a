"""One module per command: what only a terminal has of it, the call of the library, and what is printed."""
