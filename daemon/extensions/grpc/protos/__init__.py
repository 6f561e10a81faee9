"""The services as .proto files, and their message classes, made from these when they are first needed."""
