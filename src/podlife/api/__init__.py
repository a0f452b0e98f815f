"""Building blocks of API objects for clients and servers: codecs, names, selectors, patches, schemas."""
