"""Small tools for work that several wait for: single flight, a circuit breaker."""
