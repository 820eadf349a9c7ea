//! Files: private folders, durable writes.
