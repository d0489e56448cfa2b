"""What runs inside a judge's worker process, and what is said between it and the server."""
