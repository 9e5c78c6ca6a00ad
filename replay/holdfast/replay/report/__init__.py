"""Shows an analysis to people: tables, a picture, a page. Knows the analysis and no Spark."""
