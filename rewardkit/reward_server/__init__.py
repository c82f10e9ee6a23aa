"""The scorers over HTTP, for OpenRLHF and for any trainer with a remote reward."""
