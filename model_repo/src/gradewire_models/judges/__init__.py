"""Build judges, which are language models that grade answers, and read their catalog and repository."""
