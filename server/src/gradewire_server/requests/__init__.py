"""Requests without a transport: its plan, its items, its reply."""
