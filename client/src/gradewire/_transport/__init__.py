"""What carries the calls: gRPC, and an event loop in the background."""
