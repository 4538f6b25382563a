"""The plan of a training: which method suits the data, what is held out, and the settings that the data decide."""
