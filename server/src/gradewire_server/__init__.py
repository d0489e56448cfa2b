"""gradewire's server: scores answers over gRPC (see docs/architecture.md for its rooms)."""
