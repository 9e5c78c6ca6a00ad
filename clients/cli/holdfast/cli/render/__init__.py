"""What a person reads on the terminal: descriptions, explanations, moments, escapes."""
