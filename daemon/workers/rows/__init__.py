"""Workers that run requests row by row: each begins and ends on its own, many at the same time."""
