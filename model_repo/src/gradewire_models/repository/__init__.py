"""Read and describe a Triton model repository, without packages that build or run models."""
