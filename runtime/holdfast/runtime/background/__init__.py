"""What a leader does by itself now and then: expire offsets, end segments."""
