"""Running documents, and documents with sections."""
