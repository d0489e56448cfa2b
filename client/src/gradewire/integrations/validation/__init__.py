"""What `ValidationScorer` is made of: a spool on disk, a thread that scores, a thread that tells."""
