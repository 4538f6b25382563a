"""The command line: its program, how commands are made of functions, and what is printed where."""
