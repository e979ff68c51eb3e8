"""`thaiqr-server check`: what is wrong with a deployment, in one screen.

Each module looks at one part and returns findings. It raises nothing for what a deployment may have wrong.
"""
