"""Loading and building of bi-encoders, cross-encoders and small students."""
