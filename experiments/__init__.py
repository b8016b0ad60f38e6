"""Research on the package, outside the wheel: suites, the authors' protocol, studies, records."""
