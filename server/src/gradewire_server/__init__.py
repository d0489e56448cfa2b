"""gradewire's server, which scores answers over gRPC. docs/architecture.md describes its packages."""
