"""`gradewire bench load`: find a server's knee, and test the server at twice the knee."""
