"""What is built: reads and describes a Triton model repository, without what builds or runs models."""
