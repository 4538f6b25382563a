"""``python -m samesense`` is the ``samesense`` command."""

from samesense.cli.main import main

if __name__ == "__main__":
    main()
