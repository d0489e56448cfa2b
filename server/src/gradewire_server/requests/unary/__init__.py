"""Score: one request with all items, one reply with all results."""
