//! What the tools do with a Jira that answers as it likes.
