"""Talk to the world, and translate; nothing here decides."""
