"""The types that all packages of the server share: items, needs, answers and results. Pure, without I/O."""
