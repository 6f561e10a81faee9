"""What each optimisation costs the best class, and gains in CPU time: real weights, and photographs of packages.

photographs  which files, and crops of them that a seed draws
models       archives of pretrained classifiers, whose packages are installed into a folder of their own
__main__     the table of docs/optimize.md
"""
