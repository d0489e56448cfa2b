"""Figures of a run by the values of columns: `gradewire score --by`."""
