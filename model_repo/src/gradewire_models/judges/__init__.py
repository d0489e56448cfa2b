"""Build judges, and read their catalog and repository."""
