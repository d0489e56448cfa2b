"""Posts of frameworks for reinforcement learning: the client's rewards over the gateway's own channel."""
