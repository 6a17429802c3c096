"""A run of one's own: what people paste of its memory, read; held against the estimate; and what explains the difference."""
