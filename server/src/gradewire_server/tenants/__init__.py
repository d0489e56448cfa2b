"""Tenants: their tokens, the tokens' scopes, and quotas for text."""
