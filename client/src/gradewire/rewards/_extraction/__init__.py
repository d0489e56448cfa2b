"""Where final answers stand in completions; each reader takes linear time."""
