"""Full text in XML and HTML: is it whole, and is it the paper?"""
