"""What is found out besides the gradients."""
