"""The second level in Redis or Valkey, shared by several processes."""
