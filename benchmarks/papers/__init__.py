"""Compare measured values with the tables of the five papers whose metrics gradewire has."""
