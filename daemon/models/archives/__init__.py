"""Archives: the store, downloads, manifests, and the directories of unpacked files."""
