"""The commands that steer a model's traffic: its route."""
