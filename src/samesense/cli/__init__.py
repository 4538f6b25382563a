"""The command line: one command a file. It parses, calls and prints."""
