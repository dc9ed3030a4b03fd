"""Pages that are one file each: style, script and pictures lie in them, nothing is loaded (§8).

They are read on a phone, on paper and by a screen reader; everything that is shown by the drawing
stands in a table too.
"""

from tasks.report.pages import compare_page, report_page, status_page

__all__ = ["compare_page", "report_page", "status_page"]
