"""The paper's experiments, and any others: suites of independent jobs, records, tables."""
