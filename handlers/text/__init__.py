"""What the text handlers do to texts before a model sees them: pure functions, without torch."""
