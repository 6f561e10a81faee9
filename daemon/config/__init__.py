"""The daemon's configuration: values with their origins, addresses, tokens, the workers' environment."""
