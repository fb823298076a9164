"""What may be broken without a wrong or a worse result, each with the reason."""

FILTER = "what passes the filter is proved; without it that takes longer"

UNNOTICED: dict[str, str] = {
    "derive.exact: ZeroTest._may_be_equal: always": FILTER,
    "derive.exact: ZeroTest._fingerprint: off": FILTER,
    "derive.exact: ZeroTest._fingerprint: wrong": "twice a fingerprint is one",
    "derive.exact: ZeroTest._marked: off": FILTER,
    "derive.exact: ZeroTest._marked: wrong": "twice a fingerprint is one",
    "derive.rules: _nowhere: off": "it has nothing to give",
    "derive.rules: _nowhere: wrong": "twice nothing is nothing",
}
