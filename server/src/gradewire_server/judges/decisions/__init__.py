"""Judges that are decision models: servers that answer `/v1/systemone` or `/v1/decisions`."""
