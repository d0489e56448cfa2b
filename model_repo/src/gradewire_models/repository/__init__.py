"""A Triton model repository, read and described without what builds or runs models."""
