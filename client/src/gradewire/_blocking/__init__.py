"""What the blocking client adds: an event loop on a thread of its own, in every process that uses the client."""
