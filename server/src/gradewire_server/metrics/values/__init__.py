"""Find and parse the values in texts, and compare answers with references."""
