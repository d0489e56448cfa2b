"""NVIDIA Triton as both encoders and judges reach it: the client, its errors, its counters."""
