"""Request handling without a transport: plan a request, read its items and fill its reply."""
