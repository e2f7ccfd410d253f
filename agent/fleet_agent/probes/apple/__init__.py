"""The Mac's own GPU, and what macOS tells about it."""
