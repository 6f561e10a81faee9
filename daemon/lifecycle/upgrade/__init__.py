"""Replace a running daemon by a new process: `giving` is the old one's side, `taking` the new one's."""
