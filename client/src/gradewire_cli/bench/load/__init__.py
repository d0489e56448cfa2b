"""`gradewire bench load`: send calls at a fixed rate, find a server's knee, and test the server at twice the knee."""
