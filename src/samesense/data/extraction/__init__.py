"""Extracts the text of document files (plain text, Markdown, HTML, PDF and Word) as blocks in reading order."""
