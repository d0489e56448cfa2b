"""What keeps a text from being embedded again: memory, the second level, and the calls that wait for one pass."""
