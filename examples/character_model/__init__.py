"""A character-level model of names, trained without autograd; used by ../makemore.py.

words.py       a file of words -> examples, in three parts
network.py     parameters, one step of descent by the generated closed form, losses, samples
training.py    the run: its settings, its state, and the loop
checkpoint.py  a run as a file
pictures.py    the loss curve and the gradient of the logits as PNG
"""
