"""What members are told without being asked: whom a stream carries, and who is to hear what."""
