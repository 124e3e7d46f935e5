"""Sources that propose where the PDF of a paper is, one file each."""
