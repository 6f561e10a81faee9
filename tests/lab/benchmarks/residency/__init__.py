"""Models that come and go: their first answers, and many of them."""
