"""Where vectors, verdicts, synthetic answers and corpora are kept: memory, disk, Redis."""
