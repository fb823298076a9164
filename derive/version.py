"""The version of gradform: in one place, so that it is known where nothing is installed."""

VERSION = "0.1.0"
