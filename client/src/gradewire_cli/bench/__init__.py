"""`gradewire bench`: reproduce papers' tables on your rows, and load-test a server."""
