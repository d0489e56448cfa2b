"""Draws over values: numbers, dates, names, titles, colours, yes and no, lists."""
