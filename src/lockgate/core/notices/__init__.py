"""Who is told of what needs a human, when, and in which words; nothing here sends anything."""
