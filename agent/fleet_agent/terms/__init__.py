"""The terms on which a machine's owner lends it: amounts, hours, presence, power."""
