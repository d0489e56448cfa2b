"""What happens between reading and writing: rows are scored, and scores stand beside labels."""
