"""The HTTP gateway: a separate process that offers a gradewire server's gRPC methods over HTTP with JSON."""
