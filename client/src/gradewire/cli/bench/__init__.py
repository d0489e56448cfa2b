"""`gradewire bench`: the published tables of evaluators, on your rows."""
