"""What server and clients must do alike and the .proto files cannot say; standard library and protobuf only."""
