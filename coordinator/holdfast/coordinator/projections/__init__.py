"""Records folded into what people read; nothing is ever decided on it."""
