"""Between reading and writing: rows are scored, and scores stand beside labels."""
