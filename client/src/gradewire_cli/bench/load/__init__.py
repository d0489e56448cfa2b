"""`gradewire bench load`: an open loop of calls against a server, its knee, and a step at twice the knee."""
