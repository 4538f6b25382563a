"""Models put together: bi-encoders, cross-encoders and small students, from a folder, the hub, or parts."""
