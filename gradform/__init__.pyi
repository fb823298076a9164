from derive import *  # noqa: F403

__version__: str
