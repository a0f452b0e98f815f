"""The strategy of pods, and the validation of everything in a pod."""
