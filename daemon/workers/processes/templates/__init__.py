"""Templates: the warm processes that workers are forked from."""
