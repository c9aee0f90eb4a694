/// What the body of an update throws once it has seen that there is nothing to write, so that nothing is written.
struct NothingToChange: Error {}
