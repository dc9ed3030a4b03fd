"""Effects: each module does one, as a plain function."""
