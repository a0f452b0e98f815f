"""What several packages use of the operating system and Python does not offer."""
