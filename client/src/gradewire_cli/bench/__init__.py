"""`gradewire bench`: published tables of evaluators on your rows, and load on a server."""
