"""`gradewire bench`: the published tables of evaluators on your rows, and a server under load."""
