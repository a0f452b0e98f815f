"""What API objects are made of, for clients and servers alike: codecs, names, selectors, patches, schemas."""
