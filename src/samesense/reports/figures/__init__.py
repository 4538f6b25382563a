"""Figures of a report; matplotlib is loaded when one is drawn."""
