"""Tenants: who has which token, what a token is good for, how much text a tenant may send, and what it did."""
