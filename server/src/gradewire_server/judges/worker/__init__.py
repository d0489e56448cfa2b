"""A judge's worker process, and the messages between the server and this process."""
