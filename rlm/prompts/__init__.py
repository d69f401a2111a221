"""Write the prompts of the models, and parse their replies."""
