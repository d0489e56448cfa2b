"""What the server tells of itself over gRPC: the figures that Prometheus reads, in short."""
