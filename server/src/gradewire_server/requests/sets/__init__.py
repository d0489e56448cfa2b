"""Reference sets as requests speak of them: by name and digest, and closed for good."""
