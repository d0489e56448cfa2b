"""The JSON twin of every gRPC method, from the protos' descriptors."""
