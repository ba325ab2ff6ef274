//! What an action is made of, and what follows from a change of it.
