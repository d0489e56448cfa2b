"""The server's face: requests become items, results become replies, errors become codes; admission, life, health."""
