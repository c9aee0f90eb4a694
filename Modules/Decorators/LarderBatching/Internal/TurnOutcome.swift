/// What becomes of a caller who waits in a queue.
enum TurnOutcome: Sendable {
  /// It is the caller's turn, and nobody else's until it says that it has ended.
  case turn
  /// What the caller waited for is over, with an error where it failed.
  case finished((any Error)?)
}
