"""What a request does, without a transport: its plan, its items, its reply."""
