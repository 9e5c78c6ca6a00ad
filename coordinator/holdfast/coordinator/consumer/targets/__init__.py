"""What members are to own, and how they come to it: wishes, epochs, targets, steps."""
