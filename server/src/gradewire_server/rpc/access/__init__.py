"""Who may do what: scopes and quotas of our methods, tokens for health and reflection, and for metrics over HTTP."""
