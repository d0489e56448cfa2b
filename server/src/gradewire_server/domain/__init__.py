"""The common language of all rooms of the server: items, needs, answers, results. Pure types, no I/O."""
