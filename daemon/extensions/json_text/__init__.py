"""Large JSON in steps: found, checked and read a window at a time, so that nothing is built before it was counted."""
