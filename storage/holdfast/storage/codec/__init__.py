"""Events and states as bytes: protobuf messages by reflection, and a state as records."""
