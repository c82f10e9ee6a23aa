"""Responses that exist already, and their scores."""
