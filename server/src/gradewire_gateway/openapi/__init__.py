"""The OpenAPI document, from the same descriptors as the twins."""
