"""Tenants, with their tokens, scopes and quotas."""
