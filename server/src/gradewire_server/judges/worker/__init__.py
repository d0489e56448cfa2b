"""A judge's worker process, and the messages between it and the server."""
