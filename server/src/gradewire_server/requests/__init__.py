"""Request handling, independent of the transport."""
