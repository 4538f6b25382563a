"""The command line, one module per command: parse the arguments, call the library, print the result."""
