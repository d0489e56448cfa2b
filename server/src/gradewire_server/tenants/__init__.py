"""Tenants: who has which token, what a token is good for, and how much text a tenant may send."""
