//! The life of a case: requirements, build, load, warm, measure, tear down; one event stream; interrupts.
