"""The routes: what can be asked over HTTP, and which documents answer."""
