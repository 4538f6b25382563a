"""Conventions of published tables: names of columns, notation of numbers, words for classes and answers, lists."""
