"""The prompts of the models, and the parsing of their replies."""
