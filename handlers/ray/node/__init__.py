"""The part of a worker that runs on a node: an actor, the process that it holds, and the model's files."""
