"""What a gate's command left and printed, read as findings and test results."""

from lockgate.adapters.reports.read import read_reports

__all__ = ["read_reports"]
