"""The group autoscaling: HorizontalPodAutoscalers, stored as v2."""
