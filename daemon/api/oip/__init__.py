"""The Open Inference Protocol, version 2, over HTTP: what KServe's, Triton's and MLServer's clients speak."""
