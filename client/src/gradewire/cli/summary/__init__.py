"""The summary that ends a run: for people, and as a document."""
