"""What each kind answers to the verbs' questions: defaults, validation, what an update may change."""
