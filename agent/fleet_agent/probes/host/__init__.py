"""The computer itself: system, processor, memory, disk, and what a container allows."""
