"""What drivers share that run real notebooks: accounts, folders, addresses, efforts."""
