"""HTTP with JSON in front of a gradewire server: a process of its own, and a gRPC client like any other."""
