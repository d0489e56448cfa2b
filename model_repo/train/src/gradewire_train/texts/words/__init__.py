"""Draws over WordNet: things, terms by their definitions, people, places, activities, qualities."""
