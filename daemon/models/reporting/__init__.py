"""From what pools and dispatchers notice to events."""
