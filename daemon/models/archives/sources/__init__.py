"""Where archives are downloaded from: the URLs that are allowed, web servers, and stores of objects."""
