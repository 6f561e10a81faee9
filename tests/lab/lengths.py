"""Lengths of real requests to a text classifier, in bytes: questions of customers to an online bank.

BANKING77 (Casanueva et al., "Efficient Intent Detection with Dual Sentence Encoders", 2020), the 10 003 questions of
`banking_data/train.csv` in github.com/PolyAI-LDN/task-specific-datasets at commit 57ec275. Each number is the middle of
one per cent of these, from the shortest on. They have a mean of 59 bytes (12 words), a median of 47 (10) and a standard
deviation of 40; the longest of eight drawn at random is 2.1 times the mean, the longest of 32 is 3.1 times the mean.
"""

QUESTIONS = (
    19, 22, 23, 25, 25, 26, 27, 28, 28, 29, 30, 30, 31, 31, 32, 32, 33, 33, 34, 34, 35, 35, 35, 36, 36,
    37, 37, 37, 38, 38, 39, 39, 40, 40, 40, 41, 41, 42, 42, 42, 43, 43, 44, 44, 44, 45, 45, 46, 46, 47,
    47, 48, 48, 49, 49, 50, 50, 51, 51, 52, 52, 53, 54, 54, 55, 56, 56, 57, 58, 58, 59, 60, 61, 62, 63,
    64, 65, 67, 68, 70, 72, 74, 76, 78, 81, 84, 89, 94, 99, 106, 114, 121, 128, 137, 145, 155, 165, 181, 203, 249,
)  # fmt: skip
