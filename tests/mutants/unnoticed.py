"""What may be broken without a wrong or a worse result, each with the reason."""

UNNOTICED: dict[str, str] = {}
