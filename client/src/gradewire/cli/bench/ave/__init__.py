"""`gradewire bench ave`: alignment, consistency and generalisation of evaluators."""
