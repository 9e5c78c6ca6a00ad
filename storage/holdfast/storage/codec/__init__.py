"""Events and states as bytes: protobuf messages by reflection, and the image of a state."""
