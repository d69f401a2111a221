"""Parse and write the objects of a context: manifest, generations, index pages, frames and search filters."""
