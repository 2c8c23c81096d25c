"""The studies of what stands in front of an application, repeated: over HTTP and WebSockets."""
