//! Questions in front of the conversation: the permission dialog and lists to choose from.
