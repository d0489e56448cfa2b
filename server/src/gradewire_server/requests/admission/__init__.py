"""What is let in, what waits and what is refused, before any work is done for it."""
